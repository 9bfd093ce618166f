/** The list of sessions in components. */
import { useSyncExternalStore } from "react";
import type { Client } from "../client/client.js";
import { clientClosed } from "../client/errors.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { SessionInfo } from "../protocol/model.js";
import { type ListState, type SessionList, type WatchOptions, watchSessions } from "../sessions.js";
import { Paced, unlessSame } from "./paced.js";
import { useClient } from "./provider.js";
import { type Kind, type Shared, Shelf } from "./shared.js";

/** The list at one moment. */
export interface ListSnapshot {
  /** Last changed first. What did not change is the same object. */
  readonly sessions: readonly SessionInfo[];
  /** `live`: it is as the server has it. `syncing`: it was asked for. Else it is shown as it was. */
  readonly state: ListState;
  /** Whether the server has sessions that changed longer ago. */
  readonly hasMore: boolean;
  /** Why it is closed, where nobody here closed it. */
  readonly error: MidstreamError | undefined;
  /** Load the next page; false where there is none. */
  loadMore(): Promise<boolean>;
}

export interface Sessions extends ListSnapshot {
  /** Watch again where the list is closed because of an error; else nothing. */
  reopen(): void;
}

const shelves = new WeakMap<Client, Shelf<ListSnapshot, Sessions>>();

/**
 * The sessions of the server, kept as it has them: titles, what runs (`running_turn_id`), what waits for a
 * person (`pending_interactions`). All components that ask for the same list share it.
 */
export function useSessions(options: WatchOptions = {}): Sessions {
  const list = sharedList(useClient(), options);
  return useSyncExternalStore(list.subscribe, list.read, list.readOnServer);
}

function sharedList(client: Client, options: WatchOptions): Shared<ListSnapshot, Sessions> {
  const shelf = shelves.get(client) ?? new Shelf();
  shelves.set(client, shelf);
  const { archived = false, limit = 50 } = options;
  return shelf.take(`${archived} ${limit}`, () => new ListKind(client, { archived, limit }));
}

const none = (state: ListState, error?: MidstreamError): ListSnapshot => ({
  sessions: [],
  state,
  hasMore: false,
  error,
  loadMore: async () => false,
});

/** How a list is shared. */
class ListKind implements Kind<ListSnapshot, Sessions> {
  readonly #client: Client;
  readonly #options: WatchOptions;
  #list: SessionList | undefined;

  constructor(client: Client, options: WatchOptions) {
    this.#client = client;
    this.#options = options;
  }

  open(): Paced<ListSnapshot> {
    if (this.#client.state === "closed") {
      return Paced.still(none("closed", this.#client.error ?? clientClosed()));
    }
    const list = watchSessions(this.#client, this.#options);
    this.#list = list;
    const loadMore = () => list.loadMore();
    return new Paced<ListSnapshot>(
      (listener) => list.subscribe(listener),
      (before) => {
        const { items: sessions, state, hasMore, error } = list;
        return unlessSame(before, { sessions, state, hasMore, error, loadMore });
      },
    );
  }

  present(snapshot: ListSnapshot, reopen: () => void): Sessions {
    return { ...snapshot, reopen };
  }

  blank(reopen: () => void): Sessions {
    return this.present(none("connecting"), reopen);
  }

  isClosed(): boolean {
    return (this.#list?.state ?? "closed") === "closed";
  }

  giveUp(): boolean {
    this.#list?.close();
    return true;
  }
}
