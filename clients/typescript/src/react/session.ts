/** One session in components. */
import { useSyncExternalStore } from "react";
import type { Client, SessionOptions } from "../client/client.js";
import { clientClosed } from "../client/errors.js";
import type { Session } from "../client/session.js";
import { Paced } from "./paced.js";
import { useClient } from "./provider.js";
import { type Kind, type Shared, Shelf } from "./shared.js";
import { blank, type SessionSnapshot, snapshotsOf, stillSession } from "./snapshot.js";

/** A snapshot, and how a session that was closed is opened again. */
export interface OpenSession extends SessionSnapshot {
  /** Open the session again where it is closed, because of an error or by somebody here; else nothing. */
  reopen(): void;
}

type SharedSession = Shared<SessionSnapshot, OpenSession>;

const shelves = new WeakMap<Client, Shelf<SessionSnapshot, OpenSession>>();

/**
 * A session, opened at once and kept equal to the server's. All components that name it share it. When the
 * last one is gone, it stays open for half a minute, and as long as it has a turn that runs or input that
 * waits; then it is closed here, unless somebody else asked the client for it. It never ends a turn.
 *
 * `options` count for the first who asks.
 */
export function useSession(sessionId: string, options?: SessionOptions): OpenSession {
  const shared = sharedSession(useClient(), sessionId, options);
  return useSyncExternalStore(shared.subscribe, shared.read, shared.readOnServer);
}

/** What the components of a client share of a session. */
export function sharedSession(client: Client, sessionId: string, options?: SessionOptions): SharedSession {
  const shelf = shelves.get(client) ?? new Shelf();
  shelves.set(client, shelf);
  return shelf.take(sessionId, () => new SessionKind(client, sessionId, options));
}

/** How a session is shared. */
class SessionKind implements Kind<SessionSnapshot, OpenSession> {
  readonly #client: Client;
  readonly #sessionId: string;
  readonly #options: SessionOptions | undefined;
  #session: Session | undefined;

  constructor(client: Client, sessionId: string, options: SessionOptions | undefined) {
    this.#client = client;
    this.#sessionId = sessionId;
    this.#options = options;
  }

  open(): Paced<SessionSnapshot> {
    if (this.#client.state === "closed") {
      const error = this.#client.error ?? clientClosed();
      const still = blank(stillSession(this.#sessionId));
      const closed: SessionSnapshot = { ...still, state: "closed", error };
      return new Paced(
        () => () => undefined,
        () => closed,
      );
    }
    this.#session = this.#client.open(this.#sessionId, this.#options);
    return snapshotsOf(this.#session);
  }

  present(snapshot: SessionSnapshot, reopen: () => void): OpenSession {
    return { ...snapshot, reopen };
  }

  blank(reopen: () => void): OpenSession {
    return this.present(blank(this.#session ?? stillSession(this.#sessionId)), reopen);
  }

  isClosed(): boolean {
    return (this.#session?.state ?? "closed") === "closed";
  }

  giveUp(): boolean {
    const session = this.#session;
    if (!session || session.state === "closed") {
      return true;
    }
    const isBusy = session.pending.length || session.turn || session.queue.length;
    if (isBusy || snapshotsOf(session).isWatched) {
      return false;
    }
    if (session.asked === 1) {
      session.close(); // nobody but this component's like asked for it
    }
    return true;
  }
}
