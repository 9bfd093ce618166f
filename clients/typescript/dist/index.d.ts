import { a as systemEnvironment, i as SocketMaker, n as News, r as Socket, t as Environment } from "./environment-BFPM2oIX.js";
import { $ as ToolPart, A as ApprovalResponse, B as Part, C as Closed, D as WelcomeInfo, E as SyncPayload, F as InteractionPart, G as QuestionOption, H as ProviderMetadata, I as InteractionRequest, J as SessionInfo, K as QuestionResponse, L as InteractionResponse, M as DataPart, N as ErrorPart, O as ActionPart, P as FilePart, Q as TextPart, R as Message, S as Timers, T as Signal, U as Question, V as PartBase, W as QuestionAnswer, X as StepStartPart, Y as SourcePart, Z as StreamState, _ as Params, a as TurnHandle, at as ValueMap, b as PromptResult, c as Replica, ct as JSON_CODEC, d as PageOutcome, et as ToolState, f as Exchange, g as Page, h as Delivery, i as HandleState, it as Value, j as ContextPart, k as ApprovalMode, l as SavedReplica, lt as loadMsgpack, m as Cursor, n as Store, nt as TurnFailure, o as TurnOwner, ot as MidstreamError, p as CancelQueue, q as ReasoningPart, r as memoryStore, rt as UserPart, s as Changes, st as Codec, t as Keeper, tt as Turn, u as Outcome, v as PendingInteraction, w as SessionFrame, x as StopResult, y as PromptParams, z as Origin } from "./store-C5yLd7U3.js";

//#region src/client/reconnect.d.ts
/** The times of a connection, in ms. */
interface Policy {
  /** The first pause is a random one up to this; each further one up to twice the one before. */
  readonly backoffMs: number;
  readonly backoffLimitMs: number;
  /** A connection that lived this long was good: the pauses begin anew. */
  readonly stableMs: number;
  /** From the first packet to the `welcome`. */
  readonly connectMs: number;
  /** After a sleep of the machine: how long the answer to a ping may take at most. */
  readonly probeMs: number;
  /** On return to the foreground: how long nothing at all may come before the connection is given up. */
  readonly wakeMs: number;
  /** How often the clocks are looked at to notice a sleep; never more than a third of a heartbeat. */
  readonly checkMs: number;
  /** The longest pause that a server may ask for. */
  readonly goawayLimitMs: number;
}
declare const DEFAULT_POLICY: Policy;
//#endregion
//#region src/client/link.d.ts
/** `connecting`: an attempt is under way. `live`: welcomed. `offline`: waiting to try again. */
type LinkState = "connecting" | "live" | "offline" | "closed";
/** `auto` is msgpack where this engine can, else JSON. */
type Encoding = "auto" | "msgpack" | "json";
/** Credentials, or who gives them; asked again before each attempt, `refused` where the last ones were not accepted. */
type Token = string | null | ((refused: boolean) => string | null | Promise<string | null>);
//#endregion
//#region src/client/mutations.d.ts
/**
 * Why the messages are to be read again. `synced`: the replica was replaced as a whole. `cleared`: messages
 * were removed. `loaded`: earlier messages joined. `slow`: this reader did not keep up.
 */
type ResetReason = "synced" | "cleared" | "loaded" | "slow";
/** What changed, and what it is now. */
type Payload = /** The whole message: it is new, was committed, or lost a part. */{
  readonly variant: "message";
  readonly message_id: string;
  readonly payload: Message;
} /** A whole part that is new or changed and not committed yet. */ | {
  readonly variant: "part";
  readonly message_id: string;
  readonly part_id: string;
  readonly payload: Part;
} /** Text at the end of a part: of its `text`, or of a tool part's `input_text`. */ | {
  readonly variant: "delta";
  readonly message_id: string;
  readonly part_id: string;
  readonly payload: {
    readonly text: string;
  };
} | {
  readonly variant: "turn";
  readonly payload: Turn;
} | {
  readonly variant: "session";
  readonly payload: SessionInfo;
} /** Read `session.messages` again. */ | {
  readonly variant: "reset";
  readonly payload: {
    readonly reason: ResetReason;
  };
};
type Mutation = Payload & {
  /** `epoch:version`, and `:index` where one version changed several things. Unique in the session. */readonly mutation_id: string;
  readonly session_id: string; /** When it happened, in ms since the epoch by the server's clock. */
  readonly created_at: number; /** The version that made the payload what it is. */
  readonly revision: number;
};
//#endregion
//#region src/client/streams.d.ts
/** What a client publishes to its readers: each has a bounded buffer of its own, and none delays another. */
/**
 * What one reader reads with `for await`: everything since it was made, in order.
 *
 * At most `limit` items wait. What becomes of a slower reader is said by `overflow`, which makes the one item
 * that then stands for all that waited; without it the oldest item is dropped. Leaving the loop ends it.
 */
declare class Stream<T> implements AsyncIterableIterator<T, undefined> {
  private readonly limit;
  private readonly overflow;
  private readonly onEnd;
  private items;
  private waiting;
  private ended;
  constructor(limit: number, overflow: (() => T) | undefined, onEnd: (stream: Stream<T>) => void);
  push(item: T): void;
  /** End it: after what waits the reader gets the error, or the loop just ends. */
  end(error?: unknown): void;
  next(): Promise<IteratorResult<T, undefined>>;
  /** Stop reading: what waits is dropped and nothing more is kept. */
  return(): Promise<IteratorReturnResult<undefined>>;
  [Symbol.asyncIterator](): this;
  private wake;
}
/** Gives each item to all readers that there are. */
declare class Fanout<T> {
  private readonly limit;
  private readonly readers;
  private ended;
  constructor(limit?: number);
  /** Whether anybody reads. */
  get isRead(): boolean;
  /** Return a new stream, which begins now. */
  reader(limit?: number, overflow?: () => T): Stream<T>;
  publish(item: T): void;
  /** End all streams, and those that are asked for later. */
  end(error?: unknown): void;
}
//#endregion
//#region src/client/replica.d.ts
/** A replica that tells its readers what changed, after it changed; only while somebody reads. */
declare class SessionReplica {
  readonly law: Replica;
  private readonly readers;
  constructor(sessionId: string, includeInternal: boolean);
  /** How many messages the window spans at most: removed and internal ones count too. */
  get held(): number;
  /** A stream of all mutations from now on, of which at most `limit` wait. */
  mutations(limit?: number): Stream<Mutation>;
  apply(frame: SessionFrame): Outcome;
  /** Apply the answer to `subscribe`. */
  applySync(payload: SyncPayload): Outcome;
  /** Merge a page that `law.expectPage` announced. */
  mergePage(page: Page): PageOutcome;
  /** End all streams of mutations. */
  end(error?: unknown): void;
  private tell;
  private told;
  private toldOfMessage;
  private toldReset;
  private reset;
  private mutation;
  private now;
}
//#endregion
//#region src/client/history.d.ts
/** A message that is not the same here and there; a side is `[revision, digest]`, or undefined if absent. */
interface Difference {
  readonly sequence: number;
  readonly here: readonly [number, string] | undefined;
  readonly there: readonly [number, string] | undefined;
}
/** What a comparison found. */
interface VerifyReport {
  /** Whether the replica equals the server, as far as its window reaches. */
  readonly isEqual: boolean;
  /** Messages of the server that were compared. */
  readonly compared: number;
  readonly differences: readonly Difference[];
}
//#endregion
//#region src/client/subscription.d.ts
type SessionState = "connecting" | "syncing" | "live" | "offline" | "closed";
/** Who brings frames to subscriptions: by the channel that the answer to `subscribe` named. */
interface Router {
  listen(channel: number, subscription: Subscription): void;
  mute(subscription: Subscription): void;
}
/** What all subscriptions of a client share. */
interface Tools {
  readonly exchange: Exchange;
  readonly timers: Timers;
  readonly router: Router;
  readonly environment: Environment;
}
/** What a session is subscribed with. */
interface Wish {
  /** Messages to begin with. */
  readonly limit: number;
  /** Syncs at this pace instead of every frame. */
  readonly paceMs: number | undefined;
  /** Messages that a replica may grow to; past it, it begins anew with the newest, between turns. */
  readonly maxMessages: number;
  /** How to create the session where there is none. */
  readonly create: Params<"sessions.create"> | undefined;
}
/** What a subscription tells its session. */
interface SubscriptionUser {
  /** After a sync (true), and after a change that is more than text (false). */
  onNews(synced: boolean): void;
  onSignal(signal: Signal): void;
  /** Called once; `error` is undefined where this client closed it. */
  onClosed(error: MidstreamError | undefined): void;
}
declare class Subscription {
  readonly replica: SessionReplica;
  private readonly tools;
  private readonly wish;
  state: SessionState;
  /** Why it is closed, where nobody asked for it. */
  error: MidstreamError | undefined;
  /** Told of every frame and every state. */
  readonly changed: Changes;
  readonly states: Fanout<SessionState>;
  user: SubscriptionUser | undefined;
  private readonly sessionId;
  private create;
  private isCreating;
  private isReady;
  /** Counts subscriptions: the answer to an earlier one has no effect any more. */
  private generation;
  private cancelRetry;
  private gapAt;
  private beganWith;
  private troubles;
  private troubledAt;
  constructor(replica: SessionReplica, tools: Tools, wish: Wish);
  /** The replica is what the store had of it, if anything: it may be brought up to date. */
  ready(): void;
  /** There is a link: subscribe, from where the replica stands. */
  connected(): void;
  /** There is no link. */
  disconnected(state: "connecting" | "offline"): void;
  /** Take a frame of this subscription. */
  frame(frame: SessionFrame): void;
  /** The server ended the subscription. */
  ended(frame: Closed): void;
  /** End, because of an error or because it was asked for. */
  close(error?: MidstreamError): void;
  /** Let nothing that is under way have an effect any more: no frame, no answer, no retry. */
  private beginAnew;
  private subscribe;
  private answered;
  private createIt;
  private gap;
  /** Subscribe again: at once, or later where that did not help just now. */
  private trouble;
  private news;
  private enter;
}
//#endregion
//#region src/client/session.d.ts
/** What a session asks of its client. */
interface Owner {
  session(sessionId: string, options: {
    includeInternal: boolean;
  }): Promise<Session>;
  forget(session: Session): void;
  newId(kind: string): string;
  readonly outboxLimit: number;
}
/**
 * One conversation, kept equal to the server's. Get it from `Client.open` or `Client.session`; all who ask
 * share it. What is read here is the replica: it is never torn, and while the session is not `live` it is
 * what was known last. What did not change stays the same object.
 */
declare class Session implements TurnOwner, SubscriptionUser {
  private readonly subscription;
  private readonly tools;
  private readonly keeper;
  private readonly owner;
  readonly sessionId: string;
  /** Resolves when what the store had of the session is shown. */
  readonly restored: Promise<void>;
  private readonly signalled;
  private readonly prompts;
  private readonly history;
  private readonly law;
  private saving;
  constructor(subscription: Subscription, tools: Tools, keeper: Keeper, owner: Owner);
  /** `connecting`, `syncing`, `live`, `offline` or `closed`. */
  get state(): SessionState;
  /** Why the session is closed, where this client did not close it. */
  get error(): MidstreamError | undefined;
  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  get problem(): string | undefined;
  get includeInternal(): boolean;
  /** The messages of the window, whole, ascending: the same list until something changes. */
  get messages(): readonly Message[];
  /** Whether there are messages before the first of `messages`; see `loadEarlier`. */
  get hasEarlier(): boolean;
  /** The session's own state: title, metadata, counts; undefined before anything was known of it. */
  get info(): SessionInfo | undefined;
  /** The turn that runs now. */
  get turn(): Turn | undefined;
  /** The known turns by id: those of the messages, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn>;
  /** The ids of accepted input that is not in a message yet, in order. */
  get queue(): readonly string[];
  /** The prompts that the server has not accepted yet, in order: written offline, or on their way. */
  get pending(): readonly PromptParams[];
  /** The version of the session that the replica shows. */
  get version(): number;
  /** How far the replica has come; undefined before the first sync. */
  get cursor(): Cursor | undefined;
  /** Call back after each change of anything that is read here; the returned function ends that. */
  subscribe(listener: () => void): () => void;
  /**
   * All that changes from now on, to read with `for await`. At most `limit` mutations wait: a slower reader
   * gets one of variant `reset` in their place, and reads `messages` again; so after a sync that replaced
   * the replica, and after a clear. It ends when the session closes, with its error if any.
   */
  mutations(limit?: number): Stream<Mutation>;
  /** The states from now on; a slow reader misses the oldest. */
  states(): Stream<SessionState>;
  /** The signals (typing, presence) from now on; a slow reader misses the oldest. */
  signals(): Stream<Signal>;
  /**
   * Give the agent input. It is kept here, and in the client's store, until the server has it; then this
   * resolves, or sooner: it does not wait for a connection. Prompts are sent in order, each under its
   * `messageId`, as often as needed; the server takes it once. `handle.accepted()` tells when it is on the
   * server's disk.
   *
   * @throws MidstreamError `outbox_full`, `invalid`, `idempotency_conflict`, or the session is closed.
   */
  prompt(content: string | readonly UserPart[], options?: {
    readonly messageId?: string;
    readonly delivery?: Delivery;
  }): Promise<TurnHandle>;
  /** The handle of a prompt that is followed: one of `pending`, say, that was written before a reload. */
  handle(messageId: string): TurnHandle | undefined;
  /**
   * Stop a turn, and with it queued input: one's own, all, or none. A turn that is over stays as it is.
   * Without a connection, `current` means the turn that the replica shows: a late stop must not hit another.
   */
  stop(turnId?: string, cancelQueue?: CancelQueue): Promise<StopResult>;
  /** Take a queued prompt back, and return where it is now: one that a turn has stays there. */
  cancelInput(message_id: string): Promise<PromptResult>;
  /** What waits for a person's answer, in order of appearance. */
  interactions(): Promise<readonly PendingInteraction[]>;
  /** Answer an interaction; the first answer wins. @throws MidstreamError `interaction_closed`, `invalid` */
  respond(interaction_id: string, response: InteractionResponse): Promise<InteractionPart>;
  approve(interactionId: string, reason?: string): Promise<InteractionPart>;
  deny(interactionId: string, reason?: string): Promise<InteractionPart>;
  /** Answer all questions of an interaction: a value, or a list of values, by question id. */
  answer(interactionId: string, answers: {
    readonly [questionId: string]: string | readonly string[];
  }): Promise<InteractionPart>;
  /** Extend `messages` backwards by up to `limit` (1 to 200); false where there were none. */
  loadEarlier(limit?: number): Promise<boolean>;
  /** Compare the replica with the server by digests, each page of 200 at one and the same version. */
  verify(): Promise<VerifyReport>;
  /** Copy the session up to and with a message, or as a whole, and return the copy, synced. */
  fork(options?: {
    readonly messageId?: string;
    readonly sessionId?: string;
    readonly title?: string;
  }): Promise<Session>;
  /** Replace the title (null removes it), the metadata, or both. */
  update(changes: {
    readonly title?: string | null;
    readonly metadata?: ValueMap;
  }): Promise<SessionInfo>;
  /** Remove all messages. Refused while a turn runs. */
  clear(): Promise<SessionInfo>;
  /** Archive the session, or take it back. Refused while a turn runs. */
  archive(archived?: boolean): Promise<SessionInfo>;
  /** Let approvals be asked for (`ask`), or be given at once (`always-allow`), waiting ones too. */
  setApprovalMode(approval_mode: ApprovalMode): Promise<SessionInfo>;
  /** Delete the session for everybody, for good; it closes here too. */
  delete(): Promise<void>;
  /** Tell the session's other readers something that is not kept; never repeated. */
  signal(name: string, data?: Value): Promise<void>;
  /** Stop following the session, for all who share this object. It goes on at the server. */
  close(): void;
  /** Wait until `condition()` is true; it is asked now, and after each change. */
  until(condition: () => unknown, timeoutMs?: number): Promise<void>;
  /** Wait until the replica is equal to the server. */
  untilLive(timeoutMs?: number): Promise<void>;
  /** Store the replica now: the program may end at any moment. */
  save(): void;
  onNews(synced: boolean): void;
  onSignal(signal: Signal): void;
  onClosed(error: MidstreamError | undefined): void;
  /** Show what the store has of the session, then let it be brought up to date. */
  private restore;
  private decide;
  private change;
  private ask;
  private wait;
  private checkOpen;
}
//#endregion
//#region src/client/client.d.ts
/** What a client can be told; the defaults are right for a person's chat. */
interface ClientOptions {
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
interface SessionOptions {
  /** Make the session where there is none. */
  readonly create?: boolean;
  /** How many of the newest messages to begin with (1 to 200). */
  readonly limit?: number;
  /** Show the agent's internal messages. */
  readonly includeInternal?: boolean;
  /** Ask for changes at this pace (20 to 500). */
  readonly paceMs?: number;
}
/**
 * Speaks to one server. It connects in the background, at the latest when a session is asked for, and comes
 * back by itself until it is closed.
 */
declare class Client implements Owner {
  private readonly url;
  private readonly options;
  readonly outboxLimit: number;
  private readonly hub;
  private readonly environment;
  private readonly open_;
  /** `url` begins with `ws://` or `wss://`. */
  constructor(url: string, options?: ClientOptions);
  /** `connecting`, `live`, `offline` or `closed`. */
  get state(): LinkState;
  /** Why the client is closed, where nobody closed it: the server said not to come back, say. */
  get error(): MidstreamError | undefined;
  /** What last ended the connection or an attempt, in words; undefined while there is a connection. */
  get problem(): string | undefined;
  /** What the server last said of itself and of this connection. */
  get welcome(): WelcomeInfo | undefined;
  /** Call back after each change of the state; the returned function ends that. */
  subscribe(listener: () => void): () => void;
  /** The states from now on; a slow reader misses the oldest. */
  states(): Stream<LinkState>;
  /** Begin to connect; does not wait for it. @throws MidstreamError it is closed. */
  connect(): void;
  /**
   * Return the session at once: with a store it shows what was known last, and is then brought up to date.
   * The same object for all who ask for its id.
   */
  open(sessionId: string, options?: SessionOptions): Session;
  /** Return the session when it is equal to the server's. @throws MidstreamError `timed_out`, `not_found`, ... */
  session(sessionId: string, options?: SessionOptions & {
    readonly timeoutMs?: number;
  }): Promise<Session>;
  /** Create a session without opening it. The same `key` with the same content gives the same session. */
  create(options?: {
    readonly sessionId?: string;
    readonly title?: string;
    readonly metadata?: ValueMap;
    readonly key?: string;
  }): Promise<SessionInfo>;
  /** Return up to `limit` sessions, the last changed first; `archived` gives those instead. */
  sessions(limit?: number, archived?: boolean): Promise<SessionInfo[]>;
  /** Close the connection and all sessions. */
  close(): void;
  /** Forget a session that is closed: the next who asks for it gets a new one. */
  forget(session: Session): void;
  /** A random id, which no other client makes. */
  newId(kind: string): string;
  private make;
}
//#endregion
//#region src/protocol/digest.d.ts
/** Return the canonical JSON of a value (RFC 8785): keys sorted by UTF-16 units, numbers as ECMAScript writes them. */
declare function canonical(value: Value): string;
/** Return the first 16 hex digits of the SHA-256 of a message as it stands in a page. */
declare const messageDigest: (message: Message) => string;
//#endregion
export { ActionPart, ApprovalMode, ApprovalResponse, type CancelQueue, Client, type ClientOptions, type Codec, ContextPart, type Cursor, DEFAULT_POLICY, DataPart, type Delivery, type Difference, type Encoding, type Environment, ErrorPart, FilePart, type HandleState, InteractionPart, InteractionRequest, InteractionResponse, JSON_CODEC, type LinkState, Message, MidstreamError, type Mutation, type News, Origin, type Page, Part, PartBase, type Payload, type PendingInteraction, type Policy, type PromptParams, type PromptResult, ProviderMetadata, Question, QuestionAnswer, QuestionOption, QuestionResponse, ReasoningPart, type ResetReason, type SavedReplica, type Session, SessionInfo, type SessionOptions, type SessionState, type Signal, type Socket, type SocketMaker, SourcePart, StepStartPart, type StopResult, type Store, type Stream, StreamState, TextPart, type Token, ToolPart, ToolState, Turn, TurnFailure, type TurnHandle, UserPart, Value, ValueMap, type VerifyReport, type WelcomeInfo, canonical, loadMsgpack, memoryStore, messageDigest, systemEnvironment };