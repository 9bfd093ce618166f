/** The client: one connection that is kept, and the sessions that are read over it. */
import type { Codec } from "../protocol/codec.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { WelcomeInfo } from "../protocol/frames.js";
import type { SessionInfo, ValueMap } from "../protocol/model.js";
import { type Environment, systemEnvironment } from "./environment.js";
import { Hub } from "./hub.js";
import type { Encoding, LinkState, Token } from "./link.js";
import { DEFAULT_POLICY, type Policy } from "./reconnect.js";
import { SessionReplica } from "./replica.js";
import { type Owner, Session } from "./session.js";
import { Keeper, type Store } from "./store.js";
import type { Stream } from "./streams.js";
import { Subscription } from "./subscription.js";
import { MAX_FRAME_BYTES } from "./transport.js";

/** What a client can be told; the defaults are right for a person's chat. */
export interface ClientOptions {
  /** Where it runs. In a browser: `browserEnvironment()` of `midstream-client/browser`. */
  readonly environment?: Environment;
  /** Keeps replicas and unsent prompts over a reload. */
  readonly store?: Store;
  /** Names whose data the store holds: give each user another. */
  readonly storePlace?: string;
  readonly token?: Token;
  readonly encoding?: Encoding | Codec;
  /** How long a call waits for its answer, disconnects included; null: as long as it takes. */
  readonly callTimeoutMs?: number | null;
  /** Prompts of a session that may wait for the connection. */
  readonly outboxLimit?: number;
  /** The longest frame that is taken from the server. */
  readonly maxFrameBytes?: number;
  /** Messages that a replica may grow to; past it, it begins anew with the newest, between turns. */
  readonly maxMessages?: number;
  readonly policy?: Partial<Policy>;
  /** Told of what costs nothing but should be known: a store that fails, say. */
  readonly onTrouble?: (error: unknown) => void;
}

/** How a session is opened; it counts for the first who asks. */
export interface SessionOptions {
  /** Make the session where there is none. */
  readonly create?: boolean;
  /** How many of the newest messages to begin with (1 to 200). */
  readonly limit?: number;
  /** Show the agent's internal messages. */
  readonly includeInternal?: boolean;
  /** Ask for changes at this pace (20 to 500). */
  readonly paceMs?: number;
}

const TIMEOUT_MS = 30_000;

/**
 * Speaks to one server. It connects in the background, at the latest when a session is asked for, and comes
 * back by itself until it is closed.
 */
export class Client implements Owner {
  readonly #url: string;
  readonly #options: ClientOptions;
  readonly outboxLimit: number;
  readonly #hub: Hub;
  readonly #environment: Environment;
  readonly #open_ = new Map<string, Session>();

  /** `url` begins with `ws://` or `wss://`. */
  constructor(
    url: string,
    options: ClientOptions = {},
  ) {
    this.#url = url;
    this.#options = options;
    if (!/^wss?:\/\//.test(url)) {
      throw new TypeError(`url is '${url}', but must begin with ws:// or wss://`);
    }
    const { encoding = "auto", token = null, maxFrameBytes = MAX_FRAME_BYTES, callTimeoutMs = TIMEOUT_MS } = options;
    this.#environment = options.environment ?? systemEnvironment();
    this.outboxLimit = options.outboxLimit ?? 100;
    const policy = { ...DEFAULT_POLICY, ...options.policy };
    const link = { url, encoding, token, policy, maxFrameBytes };
    this.#hub = new Hub(link, this.#environment, callTimeoutMs ?? undefined);
    this.#hub.onAsleep = () => {
      for (const session of this.#open_.values()) {
        session.save();
      }
    };
  }

  /** `connecting`, `live`, `offline` or `closed`. */
  get state(): LinkState {
    return this.#hub.state;
  }

  /** Why the client is closed, where nobody closed it: the server said not to come back, say. */
  get error(): MidstreamError | undefined {
    return this.#hub.error;
  }

  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  get problem(): string | undefined {
    return this.#hub.exchange.problem;
  }

  /** What the server last said of itself and of this connection. */
  get welcome(): WelcomeInfo | undefined {
    return this.#hub.welcome;
  }

  /** Call back after each change of the state; the returned function ends that. */
  subscribe(listener: () => void): () => void {
    return this.#hub.changed.listen(listener);
  }

  /** The states from now on; a slow reader misses the oldest. */
  states(): Stream<LinkState> {
    return this.#hub.states.reader();
  }

  /** Begin to connect; does not wait for it. @throws MidstreamError it is closed. */
  connect(): void {
    this.#hub.begin();
  }

  /**
   * Return the session at once: with a store it shows what was known last, and is then brought up to date.
   * The same object for all who ask for its id.
   */
  open(sessionId: string, options: SessionOptions = {}): Session {
    this.#hub.begin();
    const { includeInternal = false } = options;
    const session = this.#open_.get(sessionId) ?? this.#make(sessionId, options);
    if (session.includeInternal !== includeInternal) {
      throw new TypeError(`Session '${sessionId}' is open without includeInternal: ${includeInternal}. Close it first.`);
    }
    return session;
  }

  /** Return the session when it is equal to the server's. @throws MidstreamError `timed_out`, `not_found`, ... */
  async session(sessionId: string, options: SessionOptions & { readonly timeoutMs?: number } = {}): Promise<Session> {
    const session = this.open(sessionId, options);
    await session.untilLive(options.timeoutMs ?? TIMEOUT_MS);
    return session;
  }

  /** Create a session without opening it. The same `key` with the same content gives the same session. */
  async create(
    options: {
      readonly sessionId?: string;
      readonly title?: string;
      readonly metadata?: ValueMap;
      readonly key?: string;
    } = {},
  ): Promise<SessionInfo> {
    this.#hub.begin();
    const { sessionId: session_id, title, metadata, key = this.newId("key") } = options;
    const params = { session_id, key, title, metadata };
    return (await this.#hub.exchange.ask("sessions.create", params, true)).session;
  }

  /** Return up to `limit` sessions, the last changed first; `archived` gives those instead. */
  async sessions(limit = 50, archived = false): Promise<SessionInfo[]> {
    this.#hub.begin();
    const { exchange } = this.#hub;
    const found: SessionInfo[] = [];
    let after: string | undefined;
    do {
      const page = Math.min(limit - found.length, exchange.limits.page_messages);
      const result = await exchange.ask("sessions.list", { limit: page, after, archived }, true);
      found.push(...result.items);
      after = result.next_after;
    } while (after !== undefined && found.length < limit);
    return found;
  }

  /** Close the connection and all sessions. */
  close(): void {
    this.#hub.onAsleep();
    this.#hub.close();
  }

  /** Forget a session that is closed: the next who asks for it gets a new one. */
  forget(session: Session): void {
    if (this.#open_.get(session.sessionId) === session) {
      this.#open_.delete(session.sessionId);
      this.#hub.remove(session.sessionId);
    }
  }

  /** A random id, which no other client makes. */
  newId(kind: string): string {
    const digits = [1, 2, 3, 4].map(() => Math.floor(this.#environment.random() * 2 ** 32).toString(36));
    return `${kind}_${digits.join("")}`;
  }

  #make(sessionId: string, options: SessionOptions): Session {
    const { limit = 50, paceMs, includeInternal = false } = options;
    const { store, storePlace = this.#url, maxMessages = 10_000, onTrouble = () => undefined } = this.#options;
    const create = options.create ? { session_id: sessionId, key: this.newId("key") } : undefined;
    const wish = { limit, paceMs, maxMessages, create };
    const subscription = new Subscription(new SessionReplica(sessionId, includeInternal), this.#hub.tools, wish);
    const keeper = new Keeper(store, storePlace, sessionId, includeInternal, onTrouble);
    this.#hub.add(subscription, sessionId);
    const session = new Session(subscription, this.#hub.tools, keeper, this);
    this.#open_.set(sessionId, session);
    return session;
  }
}
