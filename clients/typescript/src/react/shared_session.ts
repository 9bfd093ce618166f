/** How the parts of a program share a session. Nothing of React is in here. */
import type { Client, SessionOptions } from "../client/client.js";
import { clientClosed } from "../client/errors.js";
import type { Session } from "../client/session.js";
import { Paced } from "./paced.js";
import { type Kind, type Shared, Shelf } from "./shared.js";
import { blank, type SessionSnapshot, snapshotsOf, stillSession } from "./snapshot.js";

/** A snapshot, and how a session that was closed is opened again. */
export interface OpenSession extends SessionSnapshot {
  /** Open the session again where it is closed, because of an error or by somebody here; else nothing. */
  reopen(): void;
}

export type SharedSession = Shared<SessionSnapshot, OpenSession>;

const shelves = new WeakMap<Client, Shelf<SessionSnapshot, OpenSession>>();

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
      return Paced.still<SessionSnapshot>({ ...still, state: "closed", error });
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
      session.close(); // nobody but components asked for it
    }
    return true;
  }
}
