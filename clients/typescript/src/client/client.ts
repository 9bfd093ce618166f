/** The client: one connection that is kept, and the sessions that are read over it. */
import type { Codec } from "../protocol/codec.js";
import type { MidstreamError } from "../protocol/errors.js";
import { limitsOf, type ServerFrame, type WelcomeInfo } from "../protocol/frames.js";
import { Replica } from "../protocol/merge.js";
import type { SessionInfo, ValueMap } from "../protocol/model.js";
import { type Environment, systemEnvironment } from "./environment.js";
import { anotherSubject, clientClosed, clientFailed } from "./errors.js";
import { Exchange } from "./exchange.js";
import { type Encoding, Link, type LinkState } from "./link.js";
import { DEFAULT_POLICY, type Policy } from "./reconnect.js";
import { Session } from "./session.js";
import type { Store } from "./store.js";
import { LIST_CHANNEL, Subscription, type Tools } from "./subscription.js";
import { Timers } from "./timers.js";
import type { Refusal, Token } from "./tokens.js";
import { MAX_FRAME_BYTES, type Transport } from "./transport.js";
import { Changes } from "./waiting.js";

/** What a client can be told; the defaults are right for a person's chat. */
export interface ClientOptions {
  /** Where it runs. In a browser: `browserEnvironment()` of `midstream-client/browser`. */
  readonly environment?: Environment;
  /** Keeps replicas and unsent prompts over a reload. */
  readonly store?: Store;
  /** Who this client is, where the server has tokens. */
  readonly token?: Token;
  /** Whose data `store` has. A client is one subject's: where a token turns out to be another's, it ends. */
  readonly subject?: string;
  readonly encoding?: Encoding | Codec;
  /** How long a call waits for its answer, disconnects included; null: as long as it takes. */
  readonly callTimeoutMs?: number | null;
  /** Prompts of a session that may wait for the connection. */
  readonly outboxLimit?: number;
  /** The longest frame that is taken from the server. */
  readonly maxFrameBytes?: number;
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
export class Client {
  readonly #options: ClientOptions;
  readonly #exchange: Exchange;
  readonly #changed: Changes;
  /** What its sessions, and the list of `midstream-client/sessions`, share. @internal */
  readonly tools: Tools;
  readonly #link: Link;
  readonly #sessions = new Map<string, Session>();
  readonly #subscriptions = new Set<Subscription>();
  readonly #channels: Tools["router"] = new Map();
  #state: LinkState = "connecting";
  #error: MidstreamError | undefined;
  #welcome: WelcomeInfo | undefined;
  #subject: string | undefined;
  /** The present connection. */
  #transport: Transport | undefined;
  #unwatch: (() => void) | undefined;

  /** `url` begins with `ws://` or `wss://`. */
  constructor(url: string, options: ClientOptions = {}) {
    if (!/^wss?:/.test(url)) {
      throw new TypeError(`The url ${url} must begin with ws:// or wss://`);
    }
    this.#options = options;
    const {
      encoding = "auto",
      token = null,
      maxFrameBytes = MAX_FRAME_BYTES,
      callTimeoutMs = TIMEOUT_MS,
    } = options;
    const environment = options.environment ?? systemEnvironment();
    const timers = new Timers(environment, (error) => this.#end(clientFailed(error)));
    const exchange = new Exchange(timers, environment, callTimeoutMs ?? undefined);
    this.#exchange = exchange;
    this.#changed = new Changes(timers);
    this.tools = {
      exchange,
      timers,
      environment,
      router: this.#channels,
      newId: (kind) => this.#newId(kind),
    };
    const policy = { ...DEFAULT_POLICY, ...options.policy };
    const user = {
      linkOpened: (...opened: [Transport, Codec, WelcomeInfo]) => this.#opened(...opened),
      linkFrame: (frame: ServerFrame) => this.#take(frame),
      linkDown: (state: "connecting" | "offline") => this.#down(state),
      linkEnded: (error: MidstreamError) => this.#end(error),
    };
    this.#subject = options.subject;
    this.#link = new Link({ url, encoding, token, policy, maxFrameBytes }, user, environment, timers);
  }

  /** `connecting`, `live`, `offline` or `closed`. */
  get state(): LinkState {
    return this.#state;
  }

  /** Why the client is closed, where nobody closed it: the server said not to come back, say. */
  get error(): MidstreamError | undefined {
    return this.#error;
  }

  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  get problem(): string | undefined {
    return this.#exchange.problem;
  }

  /** Why the server did not take the last token; undefined once it took one. */
  get refusal(): Refusal | undefined {
    return this.#link.tokens?.refusal;
  }

  /** What the server last said of itself and of this connection. */
  get welcome(): WelcomeInfo | undefined {
    return this.#welcome;
  }

  /** Call back after each change of the state; the returned function ends that. */
  subscribe(listener: () => void): () => void {
    return this.#changed.listen(listener);
  }

  /** Begin to connect, if that has not begun; does not wait for it. @throws MidstreamError it is closed. */
  connect(): void {
    if (this.#state === "closed") {
      throw this.#error ?? clientClosed();
    }
    this.#unwatch ??= this.tools.environment.watch?.((news) =>
      this.tools.timers.run(() => {
        if (news === "awake") {
          this.#link.wake();
          return;
        }
        this.#save();
        if (news === "away") {
          this.#link.suspend();
        }
      }),
    );
    this.#link.start();
  }

  /**
   * Return the session at once: with a store it shows what was known last, and is then brought up to date.
   * The same object for all who ask for its id.
   */
  open(sessionId: string, options: SessionOptions = {}): Session {
    this.connect();
    const { includeInternal = false } = options;
    const session = this.#sessions.get(sessionId) ?? this.#make(sessionId, options);
    if (session.includeInternal !== includeInternal) {
      throw new TypeError(`${sessionId} is open with another includeInternal`);
    }
    session.asked++;
    return session;
  }

  /** Return the session when it is equal to the server's. @throws MidstreamError `timed_out`, `not_found`, ... */
  async session(
    sessionId: string,
    options: SessionOptions & { readonly timeoutMs?: number } = {},
  ): Promise<Session> {
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
    this.connect();
    const requests = await import("./requests.js");
    return requests.create(this.#exchange, options.key ?? this.#newId("key"), options);
  }

  /** Return up to `limit` sessions, the last changed first; `archived` gives those instead. */
  async sessions(limit = 50, archived = false): Promise<SessionInfo[]> {
    this.connect();
    const requests = await import("./requests.js");
    return requests.list(this.#exchange, limit, archived);
  }

  /** Close the connection and all sessions. */
  close(): void {
    this.#save();
    this.#end(undefined);
  }

  #make(sessionId: string, options: SessionOptions): Session {
    const { limit = 50, paceMs, includeInternal = false } = options;
    const { store, outboxLimit = 100, onTrouble = () => undefined } = this.#options;
    const wish = { limit, paceMs, create: !!options.create };
    const subscription = new Subscription(new Replica(sessionId, includeInternal), this.tools, wish);
    this.#subscriptions.add(subscription);
    if (this.#state === "offline") {
      subscription.disconnected("offline");
    }
    const session: Session = new Session(subscription, this.tools, {
      keeper: (id) => store?.keeper(id, includeInternal, onTrouble),
      outboxLimit,
      copy: (id) => this.session(id, { includeInternal }),
      claim: (id) => !this.#sessions.has(id) && !!this.#sessions.set(id, session),
      onClosed: () => {
        for (const [id, one] of this.#sessions) {
          if (one === session) {
            this.#sessions.delete(id); // the next who asks for it gets a new one
          }
        }
        this.#subscriptions.delete(subscription);
      },
    });
    this.#sessions.set(sessionId, session);
    return session;
  }

  /** Take a new connection: subscribe anew, then repeat what is safe to repeat. */
  #opened(transport: Transport, codec: Codec, welcome: WelcomeInfo): void {
    const { subject, token_ms } = welcome;
    if (subject !== (this.#subject ?? subject)) {
      this.#end(anotherSubject(subject));
      return;
    }
    this.#subject = subject;
    this.#welcome = welcome;
    this.#transport = transport;
    this.#exchange.problem = undefined;
    this.#enter("live");
    this.#exchange.limits = limitsOf(welcome);
    for (const subscription of [...this.#subscriptions]) {
      subscription.connected();
    }
    this.#exchange.connect(transport, codec);
    this.#link.tokens?.keep(token_ms, {
      ...this.tools,
      isCurrent: () => transport === this.#transport,
      onRenewed: (news) => {
        this.#welcome = { ...welcome, ...news };
        this.#changed.notify();
      },
    });
  }

  /** Bring a frame where it belongs; those of channels that are not ours any more are ignored. */
  #take(frame: ServerFrame): void {
    if (frame.tag === "result" || frame.tag === "error") {
      this.#exchange.answered(frame.id ?? -1, frame);
    } else {
      this.#channels.get("channel" in frame ? frame.channel : LIST_CHANNEL)?.take(frame as never);
    }
  }

  #down(state: "connecting" | "offline"): void {
    this.#transport = undefined;
    this.#exchange.problem = this.#link.problem;
    this.#channels.clear();
    this.#exchange.disconnect();
    this.#enter(state);
    for (const subscription of [...this.#subscriptions]) {
      subscription.disconnected(state);
    }
  }

  /** End all; once. */
  #end(error: MidstreamError | undefined): void {
    if (this.#state === "closed") {
      return;
    }
    this.#error = error;
    this.#transport = undefined;
    this.#enter("closed");
    this.#unwatch?.();
    for (const subscription of [...this.#subscriptions]) {
      subscription.close(error);
    }
    this.#exchange.close(error ?? clientClosed());
    this.#link.close();
    this.tools.timers.cancelAll();
  }

  #save(): void {
    for (const session of this.#sessions.values()) {
      session.save();
    }
  }

  #enter(state: LinkState): void {
    if (state !== this.#state) {
      this.#state = state;
      this.#changed.notify();
    }
  }

  /** A random id, which no other client makes. */
  #newId(kind: string): string {
    const digits = [1, 2, 3, 4].map(() => Math.floor(this.tools.environment.random() * 2 ** 32).toString(36));
    return `${kind}_${digits.join("")}`;
  }
}
