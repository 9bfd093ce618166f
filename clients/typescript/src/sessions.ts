/**
 * The list of sessions, kept as the server has it (SPEC 4.8, 7.11): titles, what runs, who waits for an answer.
 *
 * It is state and no log: a session that changed ten times in a moment is told once, as it is then.
 */
import type { Client } from "./client/client.js";
import { type Answer, isError } from "./client/exchange.js";
import type { LinkState } from "./client/link.js";
import { type ListChanges, Listing, readListFrames } from "./client/listing.js";
import { LIST_CHANNEL } from "./client/subscription.js";
import { Changes } from "./client/waiting.js";
import type { MidstreamError } from "./protocol/errors.js";
import type { SessionInfo } from "./protocol/model.js";
import { checkMap } from "./protocol/schema.js";

export type { ListChanges } from "./client/listing.js";

/**
 * `connecting`, `offline`: there is no connection, and the list is shown as it was. `syncing`: it was asked
 * for. `live`: it is as the server has it. `closed`: by `close`, with the client, or `error` says why.
 */
export type ListState = "connecting" | "syncing" | "live" | "offline" | "closed";

/** The list, for as long as it is open. */
export interface SessionList {
  /** Last changed first. The same array until something changes, and the same object for what did not change. */
  readonly items: readonly SessionInfo[];
  readonly state: ListState;
  /** Whether the server has sessions that changed longer ago: see `loadMore`. */
  readonly hasMore: boolean;
  /** Why it is closed, where nobody closed it. */
  readonly error: MidstreamError | undefined;
  /** Call back after each change of the above; the returned function ends that. */
  subscribe(listener: () => void): () => void;
  /** Load the next page; false where there is none. @throws MidstreamError `timed_out`, ... */
  loadMore(): Promise<boolean>;
  close(): void;
}

export interface WatchOptions {
  /** Sessions of a page (1 to 200). */
  readonly limit?: number;
  /** Those that are archived instead of the others. */
  readonly archived?: boolean;
}

/** Watch the sessions of a client's server. The list begins empty, and `subscribe` tells when it is there. */
export function watchSessions(client: Client, options: WatchOptions = {}): SessionList {
  const watch = watches.get(client) ?? new Watch(client);
  watches.set(client, watch);
  client.connect();
  return new List(watch, options.limit ?? 50, options.archived ?? false);
}

/** What the lists of one client share: a connection has one watch. */
class Watch {
  readonly client: Client;
  readonly #lists = new Set<List>();
  #ignore: (() => void) | undefined;

  constructor(client: Client) {
    readListFrames();
    this.client = client;
  }

  get tools() {
    return this.client.tools;
  }

  add(list: List): void {
    this.#lists.add(list);
    this.#ignore ??= this.client.subscribe(() => this.#follow());
    this.#follow(list);
  }

  remove(list: List): void {
    if (this.#lists.delete(list) && !this.#lists.size) {
      this.#ignore?.();
      this.#ignore = undefined;
      this.tools.router.delete(LIST_CHANNEL);
      this.tools.exchange.start("sessions.unwatch", {}, "once", () => undefined);
    }
  }

  /** A frame came. */
  take({ changes }: { readonly changes: ListChanges }): void {
    for (const list of [...this.#lists]) {
      list.take(changes);
    }
  }

  #follow(only?: List): void {
    const { state, error } = this.client;
    if (state === "live") {
      this.tools.router.set(LIST_CHANNEL, this);
    }
    for (const list of only ? [only] : [...this.#lists]) {
      list.connection(state, error);
    }
  }
}

/** What a page must have. */
const PAGE = "items:Session[] next_after?";

const watches = new WeakMap<Client, Watch>();

class List implements SessionList {
  items: readonly SessionInfo[] = [];
  state: ListState = "connecting";
  error: MidstreamError | undefined;
  readonly #watch: Watch;
  readonly #limit: number;
  readonly #archived: boolean;
  readonly #listing: Listing;
  readonly #changed: Changes;
  /** Where the next page begins. */
  #after: string | undefined;
  /** Counts the watches: what was asked in an earlier one has no effect any more. */
  #round = 0;
  /** Whether the present watch was answered, so that frames count. */
  #isAnswered = false;
  #giveUp: (() => void) | undefined;
  #loading: Promise<boolean> | undefined;

  constructor(watch: Watch, limit: number, archived: boolean) {
    this.#watch = watch;
    this.#limit = limit;
    this.#archived = archived;
    this.#listing = new Listing(archived);
    this.#changed = new Changes(watch.tools.timers);
    watch.add(this);
  }

  get hasMore(): boolean {
    return this.#after !== undefined;
  }

  subscribe(listener: () => void): () => void {
    return this.#changed.listen(listener);
  }

  loadMore(): Promise<boolean> {
    this.#loading ??= this.#loadMore().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  close(): void {
    this.#end(undefined);
  }

  /** The connection is in another state. */
  connection(state: LinkState, error: MidstreamError | undefined): void {
    if (state === "live") {
      this.#ask();
    } else if (state === "closed") {
      this.#end(error);
    } else {
      this.#begin(state);
    }
  }

  /** A frame came; before the answer it belongs to an earlier watch. */
  take(changes: ListChanges): void {
    if (changes.incomplete) {
      if (this.#isAnswered) {
        this.#ask();
      }
    } else if (this.#isAnswered && this.#listing.apply(changes)) {
      this.#show();
    }
  }

  #begin(state: ListState): void {
    this.#round++;
    this.#isAnswered = false;
    this.#giveUp?.();
    this.#giveUp = undefined;
    this.state = state;
    this.#changed.notify();
  }

  #ask(): void {
    this.#begin("syncing");
    const most = this.#watch.tools.exchange.limits.page_messages;
    // what was loaded already is asked for again, so that the list does not get shorter
    const params = {
      limit: Math.min(Math.max(this.#limit, this.items.length), most),
      archived: this.#archived,
    };
    this.#giveUp = this.#watch.tools.exchange.start("sessions.watch", params, "repeatable", (answer) =>
      this.#answered(answer),
    );
  }

  #answered(answer: Answer<"sessions.watch">): void {
    try {
      if (isError(answer)) {
        throw answer;
      }
      checkMap(PAGE, answer);
      this.#isAnswered = true;
      this.#listing.replace(answer.items);
      this.#after = answer.next_after;
      void this.#fill(this.items.length, this.#round);
    } catch (error) {
      this.#end(error as MidstreamError);
    }
  }

  /** Load pages until the list is as long as it was, then show it. */
  async #fill(wanted: number, round: number): Promise<void> {
    try {
      while (this.#after !== undefined && this.#listing.size < wanted && round === this.#round) {
        await this.#page();
      }
    } catch {
      // it is shorter than it was, and `hasMore` says so
    }
    if (round === this.#round) {
      this.state = "live";
      this.#show();
    }
  }

  async #loadMore(): Promise<boolean> {
    const { tools } = this.#watch;
    const wait = {
      what: "The list",
      timeoutMs: tools.exchange.timeoutMs,
      problem: () => tools.exchange.problem,
    };
    for (;;) {
      await this.#changed.until(
        () => (this.state === "live" || this.state === "closed" ? true : undefined),
        wait,
      );
      if (this.state === "closed" || this.#after === undefined) {
        return false;
      }
      if (await this.#page()) {
        this.#show();
        return true;
      }
    }
  }

  /** Read the next page; false where the watch is another one by the time it comes. */
  async #page(): Promise<boolean> {
    const round = this.#round;
    const { exchange } = this.#watch.tools;
    const limit = Math.min(this.#limit, exchange.limits.page_messages);
    const params = { limit, after: this.#after, archived: this.#archived };
    this.#listing.beginPage();
    try {
      const page = await exchange.ask("sessions.list", params, "repeatable");
      checkMap(PAGE, page);
      if (round !== this.#round) {
        return false;
      }
      this.#listing.join(page.items);
      this.#after = page.next_after;
      return true;
    } finally {
      this.#listing.endPage();
    }
  }

  #show(): void {
    if (this.state === "live") {
      this.items = this.#listing.sorted();
      this.#changed.notify();
    }
  }

  #end(error: MidstreamError | undefined): void {
    if (this.state !== "closed") {
      this.error = error;
      this.#watch.remove(this);
      this.#begin("closed");
    }
  }
}
