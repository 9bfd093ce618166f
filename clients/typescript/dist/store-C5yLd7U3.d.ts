import { r as Socket, t as Environment } from "./environment-BFPM2oIX.js";

//#region src/protocol/codec.d.ts
/** What a WebSocket carries: bytes in msgpack, text in JSON. */
type Payload = Uint8Array | string;
interface Codec {
  readonly name: "msgpack" | "json";
  readonly subprotocol: string;
  encode(value: unknown): Payload;
  /** @throws MidstreamError `malformed` */
  decode(data: Payload): unknown;
}
/** Frames as JSON, in text messages. */
declare const JSON_CODEC: Codec;
/**
 * Load the codec for msgpack. It needs TextEncoder and TextDecoder, which some engines lack: so it is not
 * loaded with this module.
 *
 * @throws MidstreamError `unsupported`: this engine cannot.
 */
declare function loadMsgpack(): Promise<Codec>;
//#endregion
//#region src/protocol/errors.d.ts
/** The one class of errors: what a server refused, and what a client itself has to say (SPEC 11.1). */
/** What an error may say beside its text. */
type Details = {
  readonly [name: string]: unknown;
};
/**
 * Something was refused, or could not be done. `code` is stable and for programs: those of SPEC 11.1, and
 * the client's own (`connection_lost`, `timed_out`, `session_closed`, ...). `message` is for people.
 */
declare class MidstreamError extends Error {
  readonly code: string;
  readonly details: Details;
  /** Whether the same call may succeed later as it is. */
  readonly retryable: boolean;
  constructor(code: string, message: string, details?: Details, retryable?: boolean);
}
//#endregion
//#region src/protocol/limits.d.ts
/** The limits that a client keeps to by itself are named; the server tells all of its own in `welcome`. */
interface Limits {
  readonly [name: string]: number;
  readonly frame_bytes: number;
  readonly chunk_bytes: number;
  readonly nesting: number;
  readonly calls_in_flight: number;
  readonly page_messages: number;
}
//#endregion
//#region src/protocol/model.d.ts
/** What a session is made of: messages, parts, turns, and the session's own state (SPEC 2). */
/** Anything that both encodings carry. */
type Value = null | boolean | number | string | readonly Value[] | {
  readonly [key: string]: Value;
};
/** A map with string keys. */
type ValueMap = {
  readonly [key: string]: Value;
};
/** By the provider's name: what it wants back with the next request. */
type ProviderMetadata = {
  readonly [provider: string]: ValueMap;
};
type StreamState = "streaming" | "done";
type ToolState = "input-streaming" | "ready" | "waiting-user" | "running" | "completed" | "failed";
type ApprovalMode = "ask" | "always-allow";
/** What every part has. In input the server gives the ids and numbers that are absent. */
interface PartBase {
  readonly part_id: string;
  readonly sequence: number;
  readonly step_id?: string;
}
/** Text of either role; `state` is there exactly in agent messages. */
interface TextPart extends PartBase {
  readonly type: "text";
  readonly text: string;
  readonly state?: StreamState;
  readonly provider_metadata?: ProviderMetadata;
}
/** What the model thought on its way, as far as it says so. */
interface ReasoningPart extends PartBase {
  readonly type: "reasoning";
  readonly text: string;
  readonly state: StreamState;
  readonly provider_metadata?: ProviderMetadata;
}
/** Something that the user's program adds for the model. */
interface ContextPart extends PartBase {
  readonly type: "context";
  readonly tag: string;
  readonly context: string;
}
/** A file by its URL, which may be a data URL. */
interface FilePart extends PartBase {
  readonly type: "file";
  readonly url: string;
  readonly media_type: string;
  readonly filename?: string;
  readonly provider_metadata?: ProviderMetadata;
}
/** Data for the user interface only, never for the model. */
interface DataPart extends PartBase {
  readonly type: "data";
  readonly data_type: string;
  readonly data: Value;
  readonly data_id?: string;
}
/** What an answer rests on. */
interface SourcePart extends PartBase {
  readonly type: "source";
  readonly source_type: "url" | "document";
  readonly source_id: string;
  readonly url?: string;
  readonly title?: string;
  readonly media_type?: string;
  readonly filename?: string;
  readonly provider_metadata?: ProviderMetadata;
}
/** One tool call, from the first character of its arguments to its outcome. */
interface ToolPart extends PartBase {
  readonly type: "tool";
  readonly tool_call_id: string;
  readonly tool_name: string;
  readonly state: ToolState;
  /** The arguments as they were streamed. */
  readonly input_text?: string;
  readonly input?: Value;
  readonly output?: Value;
  /** Present exactly where `failed`. */
  readonly error?: string;
  readonly title?: string;
  readonly tool_metadata?: ValueMap;
  readonly dynamic?: boolean;
  /** Arguments that could not be parsed. */
  readonly raw_input?: string;
  /** The output will be replaced. */
  readonly preliminary?: boolean;
  readonly call_provider_metadata?: ProviderMetadata;
  readonly result_provider_metadata?: ProviderMetadata;
  readonly provider_executed?: boolean;
}
interface QuestionOption {
  readonly value: string;
  readonly label?: string;
  readonly description?: string;
}
/** One question. Without `options` any string answers it; with `multiple` a list of strings. */
interface Question {
  readonly question_id: string;
  readonly question: string;
  readonly options?: readonly QuestionOption[];
  readonly multiple?: boolean;
}
/** What is asked; `expires_at` is in ms since the epoch. */
interface InteractionRequest {
  readonly title: string;
  readonly description?: string;
  readonly questions?: readonly Question[];
  readonly expires_at?: number;
}
interface ApprovalResponse {
  readonly kind: "approval";
  readonly decision: "approved" | "denied";
  readonly reason?: string;
}
interface QuestionAnswer {
  readonly question_id: string;
  readonly value: string | readonly string[];
}
interface QuestionResponse {
  readonly kind: "question";
  readonly answers: readonly QuestionAnswer[];
}
type InteractionResponse = ApprovalResponse | QuestionResponse;
/** A question to a person: an approval, or a set of questions (SPEC 8.6). */
interface InteractionPart extends PartBase {
  readonly type: "interaction";
  readonly interaction_id: string;
  readonly interaction_type: "approval" | "question";
  readonly status: "pending" | "resolved" | "expired" | "cancelled";
  readonly request: InteractionRequest;
  readonly response?: InteractionResponse;
  readonly resolved_at?: number;
  readonly resolved_by?: string;
  readonly cancel_reason?: "turn_stopped" | "session_disposed" | "runtime_interrupted";
  readonly tool_call_id?: string;
  /** Nobody was asked: the session's mode gave the approval. */
  readonly approval_mode?: "always-allow";
}
/** Something that the agent or the server did, for people to see. */
interface ActionPart extends PartBase {
  readonly type: "action";
  readonly action_id: string;
  readonly action_type: string;
  readonly state: "running" | "completed" | "failed";
  readonly title: string;
  readonly description?: string;
  readonly data?: ValueMap;
}
/** A failure that is kept in the conversation. */
interface ErrorPart extends PartBase {
  readonly type: "error";
  readonly scope: "session" | "turn";
  readonly code: string;
  readonly message: string;
  readonly recoverable: boolean;
}
/** A step boundary that the agent wants seen. */
interface StepStartPart extends PartBase {
  readonly type: "step-start";
}
type Part = TextPart | ReasoningPart | ContextPart | FilePart | DataPart | SourcePart | ToolPart | InteractionPart | ActionPart | ErrorPart | StepStartPart;
type Given<P extends Part> = Omit<P, "part_id" | "sequence" | "step_id" | "state"> & {
  readonly part_id?: string;
};
/** The parts that a prompt may have. */
type UserPart = Given<TextPart> | Given<ContextPart> | Given<FilePart> | Given<DataPart>;
/** Where a forked message came from. */
interface Origin {
  readonly session_id: string;
  readonly message_id: string;
  readonly turn_id?: string;
}
/** One message. Times are ms since the epoch by the server's clock; `state` is the agent's only. */
interface Message {
  readonly message_id: string;
  readonly session_id: string;
  readonly turn_id?: string;
  readonly sequence: number;
  readonly revision: number;
  readonly role: "user" | "agent";
  readonly visibility: "visible" | "internal";
  readonly created_at: number;
  readonly updated_at: number;
  readonly origin?: Origin;
  readonly state?: StreamState;
  readonly parts: readonly Part[];
}
/** Why a turn failed. */
interface TurnFailure {
  readonly code: string;
  readonly message: string;
}
/** One run of the agent, from the input that started it to its end. */
interface Turn {
  readonly turn_id: string;
  readonly revision: number;
  readonly state: "running" | "completed" | "failed" | "stopped";
  readonly phase: "starting" | "waiting-model" | "streaming" | "running-tool" | "waiting-user";
  readonly phase_since: number;
  readonly started_at: number;
  readonly finished_at?: number;
  readonly error?: TurnFailure;
}
/** The session's own state. What is absent has its usual value: an empty queue, nothing pending, the mode `ask`. */
interface SessionInfo {
  readonly session_id: string;
  readonly revision: number;
  readonly title?: string;
  readonly metadata?: ValueMap;
  readonly created_at: number;
  readonly updated_at: number;
  readonly archived_at?: number;
  /** Messages below it no longer exist. Absent: 1. */
  readonly first_sequence?: number;
  readonly message_count: number;
  readonly running_turn_id?: string;
  readonly queue?: readonly string[];
  readonly pending_interactions?: number;
  readonly approval_mode?: ApprovalMode;
  readonly approval_mode_by?: string;
  /** The last message that a summary covers. Absent: 0. */
  readonly summarized_through?: number;
}
//#endregion
//#region src/protocol/frames.d.ts
/** The server's answer to `hello`. */
interface WelcomeInfo {
  readonly connection_id: string;
  readonly server: string;
  readonly time: number;
  readonly heartbeat_ms: number;
  readonly limits: Limits;
  readonly subject: string;
  readonly scopes: readonly string[];
}
/** A refusal as it comes over the wire. */
interface ErrorInfo {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: ValueMap;
}
/** What became of one message (SPEC 3.4); all its own fields are there when it is new. */
interface MessageEntry extends Partial<Omit<Message, "parts" | "sequence" | "updated_at">> {
  readonly sequence: number;
  readonly updated_at: number;
  readonly part_count: number;
  readonly parts?: readonly Part[];
  readonly appends?: readonly (readonly [number, string])[];
  readonly ended?: readonly number[];
}
/** Everything that one version touched. */
interface ChangeContent {
  readonly messages?: readonly MessageEntry[];
  readonly turns?: readonly Turn[];
  readonly session?: SessionInfo;
}
/** What brings a replica up to a version (SPEC 3.8). */
interface SyncPayload extends ChangeContent {
  readonly mode: "replay" | "catchup" | "reset";
  readonly from?: number;
  readonly epoch: string;
  readonly version: number;
  readonly durable?: number;
  readonly next_before_sequence?: number;
  readonly has_more?: boolean;
}
interface Elements {
  welcome: {
    readonly info: WelcomeInfo;
  };
  result: {
    readonly id: number;
    readonly result: unknown;
  };
  error: {
    readonly id: number | null;
    readonly error: ErrorInfo;
  };
  ping: {
    readonly nonce: number;
  };
  pong: {
    readonly nonce: number;
    readonly time: number;
  };
  d: {
    readonly channel: number;
    readonly version: number;
    readonly elapsed: number;
    readonly message_sequence: number;
    readonly part_sequence: number;
    readonly text: string;
  };
  change: {
    readonly channel: number;
    readonly version: number;
    readonly durable: boolean;
    readonly content: ChangeContent;
  };
  skip: {
    readonly channel: number;
    readonly from_version: number;
    readonly version: number;
  };
  sync: {
    readonly channel: number;
    readonly payload: SyncPayload;
  };
  mark: {
    readonly channel: number;
    readonly version: number;
  };
  closed: {
    readonly channel: number;
    readonly code: string;
    readonly retryable: boolean;
  };
  signal: {
    readonly channel: number;
    readonly sender: string;
    readonly name: string;
    readonly data: Value;
  };
  goaway: {
    readonly reason: string;
    readonly reconnect_after_ms: number;
  };
  chunk: {
    readonly n: number;
    readonly last: boolean;
    readonly piece: Uint8Array | string;
  };
}
type Tag = keyof Elements;
type Frame<T extends Tag> = { [K in T]: {
  readonly tag: K;
} & Elements[K] }[T];
type ServerFrame = Frame<Tag>;
type Closed = Frame<"closed">;
type Signal = Frame<"signal">;
/** The frames that the merge law speaks of. */
type SessionFrame = Frame<"d" | "change" | "skip" | "sync" | "mark">;
//#endregion
//#region src/client/timers.d.ts
declare class Timers {
  private readonly environment;
  private readonly onFailure;
  private readonly waiting;
  /** `onFailure` is told what a callback throws. */
  constructor(environment: Environment, onFailure: (error: unknown) => void);
  /** Call back after so many ms; the returned function takes that back. */
  later(ms: number, callback: () => void): () => void;
  /** Call back now, and report what is thrown. */
  run(callback: () => void): void;
  /** Let nothing come any more. */
  cancelAll(): void;
}
//#endregion
//#region src/client/transport.d.ts
/** How a connection ended; `final` is the reason never to try again as things are. */
interface LinkEnd {
  readonly why: string;
  readonly final?: MidstreamError;
  /** The token was not accepted. */
  readonly isUnauthorized?: boolean;
  /** What came could not be read in this encoding. */
  readonly isUnreadable?: boolean;
}
/** Who is told what happens on a connection; after `ended` nothing more comes. */
interface TransportUser {
  opened(): void;
  /** A frame, or undefined for a sign of life that is none. */
  received(frame: ServerFrame | undefined): void;
  ended(end: LinkEnd): void;
}
declare class Transport {
  private readonly socket;
  private readonly codec;
  private readonly user;
  /** Frames above it are sent in chunks; the server's `welcome` may say otherwise. */
  chunkBytes: number;
  private readonly assembler;
  private chunked;
  private problem;
  private isOver;
  constructor(socket: Socket, codec: Codec, maxFrameBytes: number, user: TransportUser);
  /** Send a frame; one that is too long for a WebSocket message goes in chunks. */
  send(payload: Payload): void;
  /** End it at once, without waiting for the other end, which may not be there. */
  abort(why: string): void;
  private open;
  private take;
  private read;
  private over;
}
//#endregion
//#region src/protocol/calls.d.ts
/** How far a replica has come. */
interface Cursor {
  readonly epoch: string;
  readonly version: number;
  readonly durable: number;
}
type Delivery = "auto" | "queue" | "reject" | "interrupt";
type CancelQueue = "own" | "all" | "none";
interface PromptParams {
  readonly session_id: string;
  readonly message_id: string;
  readonly parts: readonly UserPart[];
  readonly delivery: Delivery;
}
interface PromptResult {
  readonly state: "started" | "queued" | "absorbed" | "cancelled";
  readonly message_id: string;
  readonly turn_id?: string;
  readonly position?: number;
}
interface StopResult {
  readonly stopped: boolean;
  readonly turn_id?: string;
  readonly cancelled: readonly string[];
  readonly reason: "stopped" | "idle";
}
interface SubscribeResult {
  readonly channel: number;
  readonly sync: SyncPayload;
}
/** A page of whole messages. */
interface Page {
  readonly items: readonly Message[];
  readonly total: number;
  readonly start_sequence?: number;
  readonly end_sequence?: number;
  readonly next_before_sequence?: number;
  readonly has_more: boolean;
  readonly include_internal: boolean;
  readonly before_sequence?: number;
  readonly turns: readonly Turn[];
  readonly epoch: string;
  readonly version: number;
}
interface PendingInteraction {
  readonly message_id: string;
  readonly message_sequence: number;
  readonly turn_id?: string;
  readonly interaction: InteractionPart;
}
interface VerifyResult {
  readonly version: number;
  readonly epoch: string;
  readonly digests: readonly (readonly [number, number, string])[];
}
interface SessionResult {
  readonly session: SessionInfo;
  readonly epoch: string;
  readonly version: number;
}
interface OfSession {
  readonly session_id: string;
}
/** Each method: its params and its result. */
interface Calls {
  subscribe: [OfSession & {
    cursor?: Cursor | undefined;
    limit: number;
    include_internal: boolean;
    pace_ms?: number | undefined;
  }, SubscribeResult];
  unsubscribe: [OfSession, object];
  messages: [OfSession & {
    limit: number;
    before_sequence?: number | undefined;
    include_internal: boolean;
  }, Page];
  turn: [OfSession & {
    turn_id?: string;
  }, {
    readonly turn: Turn | null;
  }];
  prompt: [PromptParams, PromptResult];
  stop: [OfSession & {
    turn_id: string;
    cancel_queue: CancelQueue;
  }, StopResult];
  respond: [OfSession & {
    interaction_id: string;
    response: InteractionResponse;
  }, {
    readonly interaction: InteractionPart;
  }];
  interactions: [OfSession, {
    readonly items: readonly PendingInteraction[];
  }];
  cancel_input: [OfSession & {
    message_id: string;
  }, PromptResult];
  verify: [OfSession & {
    from_sequence: number;
    to_sequence: number;
    include_internal: boolean;
  }, VerifyResult];
  signal: [OfSession & {
    name: string;
    data: unknown;
  }, object];
  "sessions.create": [{
    session_id?: string | undefined;
    key: string;
    title?: string | undefined;
    metadata?: object | undefined;
  }, SessionResult];
  "sessions.get": [OfSession, SessionResult];
  "sessions.list": [{
    limit: number;
    after?: string | undefined;
    archived: boolean;
  }, {
    readonly items: readonly SessionInfo[];
    readonly next_after?: string;
  }];
  "sessions.update": [OfSession & {
    title?: string | null | undefined;
    metadata?: object | undefined;
  }, SessionResult];
  "sessions.clear": [OfSession, SessionResult];
  "sessions.archive": [OfSession & {
    archived: boolean;
  }, SessionResult];
  "sessions.approval_mode": [OfSession & {
    approval_mode: string;
  }, SessionResult];
  "sessions.fork": [OfSession & {
    message_id?: string | undefined;
    new_session_id?: string | undefined;
    key: string;
    title?: string | undefined;
  }, SessionResult];
  "sessions.delete": [OfSession, object];
}
type Method = keyof Calls;
type Params<M extends Method> = Calls[M][0];
type ResultOf<M extends Method> = Calls[M][1];
//#endregion
//#region src/client/calls.d.ts
/** A result, or why there is none. */
type Answer<M extends Method> = ResultOf<M> | MidstreamError;
/** How a call is to be made. */
interface CallKind {
  /** It may go out again by itself. */
  readonly repeatable: boolean;
  /** It goes before all others. */
  readonly urgent?: boolean;
}
/** One call without an answer. */
interface PendingCall extends CallKind {
  readonly id: number;
  readonly method: Method;
  readonly params: Params<Method>;
  /** Called once, in the middle of the stream: after the frames before the answer, before those after it. */
  readonly reply: (answer: unknown) => void;
  /** How often the server put it off. */
  attempts: number;
  /** Nobody waits for the answer any more; until it comes, the call still counts at the server. */
  abandoned: boolean;
}
//#endregion
//#region src/client/exchange.d.ts
/**
 * All calls of a client, over however many connections it takes.
 *
 * A repeatable call survives its connection, and is made again, with growing pauses, where the server says
 * that it may be (`overloaded`, `unavailable`). Any other is answered by `connection_lost` when the
 * connection goes, and is not even sent without one.
 */
declare class Exchange {
  private readonly timers;
  private readonly random;
  /** How long `ask` waits; undefined: as long as it takes. */
  readonly timeoutMs: number | undefined;
  /** What last stood between this client and the server, for the texts of errors. */
  problem: string | undefined;
  /** What the server last said that it takes. */
  limits: Limits;
  private readonly table;
  private transport;
  private codec;
  private isHeld;
  private closed;
  constructor(timers: Timers, random: () => number, /** How long `ask` waits; undefined: as long as it takes. */

  timeoutMs: number | undefined);
  /** Whether calls go out now. */
  get isConnected(): boolean;
  /** Make a call; `reply` is called once, perhaps before this returns. */
  start<M extends Method>(method: M, params: Params<M>, kind: CallKind, reply: (answer: Answer<M>) => void): PendingCall | undefined;
  /**
   * Make a call and return what `take` makes of its result. `take` is called in the middle of the stream,
   * where the answer stands: the replica is then at the version that the answer shows.
   *
   * @throws MidstreamError the server's refusal, `connection_lost` or `timed_out`.
   */
  ask<M extends Method, T = ResultOf<M>>(method: M, params: Params<M>, repeatable: boolean, take?: (result: ResultOf<M>) => T): Promise<T>;
  /** Use this connection. Nothing goes out until `release`, so that what is urgent goes first. */
  connect(transport: Transport, codec: Codec, limits: Limits): void;
  /** Send what waits and may go, and from now on what is started. */
  release(): void;
  /** The connection is gone. */
  disconnect(): void;
  /** Answer every call with this error, and each that will come. */
  close(error: MidstreamError): void;
  /** Give an answer to the call that asked for it; one that nobody asked for is ignored. */
  answered(id: number, answer: {
    readonly result: unknown;
  } | {
    readonly error: ErrorInfo;
  }): void;
  private settle;
  private flush;
}
//#endregion
//#region src/protocol/outcomes.d.ts
/** What a replica says after it was given a frame: what came of it, and what changed (SPEC 4). */
/** One thing that changed. Those of a frame come in order: dropped, messages, turns, session. */
type ReplicaChange = /** Text was added to the end of a part, and nothing else changed but the message's `updated_at`. */{
  readonly kind: "appended";
  readonly message_id: string;
  readonly part_id: string;
  readonly sequence: number;
  readonly revision: number;
  readonly text: string;
} /** A message is new, or its fields or some `parts` (their sequences) changed; `lost`: a part is gone. */ | {
  readonly kind: "message";
  readonly message_id: string;
  readonly sequence: number;
  readonly revision: number;
  readonly isNew: boolean;
  readonly parts: readonly number[];
  readonly durable: boolean;
  readonly lost: boolean;
} | {
  readonly kind: "turn";
  readonly turn_id: string;
  readonly revision: number;
} | {
  readonly kind: "session";
  readonly revision: number;
} /** Messages left the replica, because the session was cleared. */ | {
  readonly kind: "dropped";
} /** Everything was replaced; no other change is named beside it. */ | {
  readonly kind: "reset";
};
/**
 * `applied`: as a whole. `ignored`: it said nothing new. `gap`: something is missing, and the content did
 * not change; subscribe with the cursor. `restart`: likewise, but only a `reset` can help.
 */
type Outcome = {
  readonly kind: "applied";
  readonly changes: readonly ReplicaChange[];
} | {
  readonly kind: "ignored";
} | Gap;
interface Gap {
  readonly kind: "gap" | "restart";
  readonly reason: string;
}
/** What came of a page. `again`: it does not fit the stream's place any more, read it again. */
type PageOutcome = "applied" | "again" | "ignored";
//#endregion
//#region src/protocol/merge.d.ts
/**
 * How far a replica can be relied on. `new`: no sync has come. `restored`: it came from a store, and counts
 * only after a `replay` or `catchup`. `lost`: something is missing that only a `reset` can give.
 */
type Stage = "new" | "restored" | "live" | "lost";
/** Replica, window and cursor as one value, for a store: write it in one go or not at all (SPEC 4.4, rule 18). */
interface SavedReplica {
  readonly session_id: string;
  readonly include_internal: boolean;
  readonly cursor: Cursor;
  readonly session: SessionInfo;
  readonly turns: readonly Turn[];
  readonly messages: readonly Message[];
  readonly from_sequence?: number;
  readonly has_more: boolean;
}
/** A client's copy of one session, from `fromSequence` upward. */
declare class Replica {
  readonly sessionId: string;
  readonly includeInternal: boolean;
  stage: Stage;
  session: SessionInfo | undefined;
  epoch: string | undefined;
  /** The version reached (`last` in SPEC.md). */
  version: number;
  /** The last committed version at or below `version`, as far as is known; too low is safe. */
  durable: number;
  /** Whether there are messages below the window, to be read as pages. */
  hasMore: boolean;
  private window;
  private held;
  private readonly pages;
  /** `includeInternal` is that of the subscription. */
  constructor(sessionId: string, includeInternal?: boolean);
  /** The lower end of the window; undefined while no messages were given, which a page then does. */
  get fromSequence(): number | undefined;
  /** The turns by id: those of the messages, the running one, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn>;
  /** The turn that runs now. */
  get runningTurn(): Turn | undefined;
  /** The messages of the window, ascending: the same list until something changes, and so for each message. */
  messages(): readonly Message[];
  message(messageId: string): Message | undefined;
  /** What to subscribe with; undefined before the first sync, and while something is missing. */
  cursor(): Cursor | undefined;
  /** Apply the next frame of the subscription; those before the first sync are ignored. */
  apply(frame: SessionFrame): Outcome;
  /** Apply a sync: the answer to `subscribe`, or one that came as a frame. */
  applySync(payload: SyncPayload): Outcome;
  /** Keep single frames from here on, for a page that is asked for now; then `mergePage`. */
  expectPage(): void;
  /** A page that was expected will not come. */
  forgetPage(): void;
  /** Merge the answer of `messages` (never of `stored`); nothing changes unless it is applied. */
  mergePage(page: Page): PageOutcome;
  /** Return everything as one value for a store, with the newest `most` messages; undefined without a cursor. */
  save(most?: number): SavedReplica | undefined;
  /** Become the replica that was saved; it counts only after a `replay` or `catchup`. */
  restore(saved: SavedReplica): void;
  private applyDelta;
  private applyChange;
  private catchUp;
  private reset;
  private carryOut;
  private newer;
  private judgePage;
  /** Note where nothing is below the window any more, or nothing is left at all. */
  private endOfHistory;
  /** Below which there is nothing once this content is taken. @throws Misfit where it is of another session */
  private below;
  private missed;
  private attempt;
}
//#endregion
//#region src/client/waiting.d.ts
/** What waits, for how long (undefined: as long as it takes), and what is known to be in the way. */
interface Wait {
  readonly what: string;
  readonly timeoutMs: number | undefined;
  problem(): string | undefined;
}
/** Who wants to know when one thing changes. */
declare class Changes {
  private readonly later;
  private readonly listeners;
  constructor(later: Environment["later"]);
  /** Call back after each change; the returned function ends that. */
  listen(listener: () => void): () => void;
  notify(): void;
  /**
   * Return the first value of `look` that is not undefined; it is called now and after each change.
   *
   * @throws MidstreamError `timed_out`; and what `look` throws.
   */
  until<T>(look: () => T | undefined, wait: Wait): Promise<T>;
}
//#endregion
//#region src/client/turns.d.ts
/**
 * `pending`: not accepted yet (kept here, or on its way). `queued`: accepted, no turn has it. `running` and
 * what follows it: the state of the turn. `cancelled` and `refused`: there will be none.
 */
type HandleState = "pending" | "queued" | "running" | "completed" | "failed" | "stopped" | "cancelled" | "refused";
/** What this client knows of one prompt. Only grows: nothing older replaces anything newer. */
declare class Progress {
  readonly prompt: PromptParams;
  state: HandleState;
  position: number | undefined;
  result: PromptResult | undefined;
  turnId: string | undefined;
  turn: Turn | undefined;
  error: MidstreamError | undefined;
  /** A call is under way to learn more. */
  isAsking: boolean;
  readonly changed: Changes;
  constructor(prompt: PromptParams, later: Environment["later"]);
  /** Whether nothing more will happen. */
  get isOver(): boolean;
  /** Take what the server says of the input. */
  learn(result: PromptResult): void;
  /** Take the turn that the input started, or into which it was absorbed. */
  took(turnId: string): void;
  /** Take the turn as it is now; an older copy is ignored. */
  follow(turn: Turn): void;
  /** There will be no more news, and why; the state stays where none is given. */
  fail(error: MidstreamError, state?: HandleState): void;
}
/** What a handle asks of its session. */
interface TurnOwner {
  stop(turnId: string, cancelQueue?: CancelQueue): Promise<StopResult>;
  cancelInput(messageId: string): Promise<PromptResult>;
  readonly problem: string | undefined;
}
/**
 * A prompt that was given to a session, and the turn that takes it. It stays valid over disconnects: what it
 * waits for it learns from the replica, or by asking.
 */
declare class TurnHandle {
  private readonly progress;
  private readonly owner;
  constructor(progress: Progress, owner: TurnOwner);
  /** The id of the prompt, and of the user message it becomes. */
  get messageId(): string;
  /** Where the prompt is now, as far as this client knows. */
  get state(): HandleState;
  /** The place in the queue, counted from 1, while it is queued and the place is known. */
  get position(): number | undefined;
  /** The turn that took the prompt, once one did. */
  get turnId(): string | undefined;
  /** That turn, as this client last saw it. */
  get turn(): Turn | undefined;
  /** Why there is no turn to wait for: refused, cancelled, or the session closed here. */
  get error(): MidstreamError | undefined;
  /** Call back after each change of what is above; the returned function ends that. */
  subscribe(listener: () => void): () => void;
  /** Wait until the server has the prompt on disk, and return what it said. */
  accepted(timeoutMs?: number): Promise<PromptResult>;
  /** Wait until a turn has the prompt, and return the turn's id. */
  started(timeoutMs?: number): Promise<string>;
  /** Wait until the turn that has the prompt is over, and return it: completed, failed or stopped. */
  finished(timeoutMs?: number): Promise<Turn>;
  /** Stop the turn that has the prompt; where none has, take the prompt back. */
  stop(): Promise<void>;
  private until;
}
//#endregion
//#region src/client/prompts.d.ts
/** Who keeps prompts over a reload until the server has them. */
interface PromptKeeper {
  /** Forget a prompt: the server accepted or refused it, or it was taken back. */
  dropPrompt(messageId: string): void;
}
//#endregion
//#region src/client/store.d.ts
/**
 * A map from text to plain data (what JSON can hold). Each write is whole or not done at all. IndexedDB is in
 * `midstream-client/indexeddb`; in React Native, AsyncStorage with JSON does it.
 */
interface Store {
  read(key: string): Promise<unknown>;
  /** All values whose keys begin so, in the order of their keys. */
  readAll(prefix: string): Promise<unknown[]>;
  write(key: string, value: unknown): Promise<void>;
  remove(key: string): Promise<void>;
}
/** A store that lives as long as the program: for tests. */
declare function memoryStore(): Store;
/** What a store has of one session. A store that fails costs what it would have kept, and nothing else. */
declare class Keeper implements PromptKeeper {
  private readonly store;
  private readonly onTrouble;
  private readonly replicaKey;
  private readonly promptKey;
  private kept;
  /** What was asked of the store before: a slow write must not come after a later one. */
  private last;
  constructor(store: Store | undefined, place: string, sessionId: string, includeInternal: boolean, onTrouble: (error: unknown) => void);
  /** Return the replica and the prompts that were kept, as far as there are any. */
  load(): Promise<{
    replica?: SavedReplica;
    prompts: PromptParams[];
  }>;
  /** Keep a prompt; `at` gives its place among the others. Resolves when it is kept. */
  keepPrompt(prompt: PromptParams, at: number): Promise<void>;
  dropPrompt(messageId: string): void;
  /** Keep the replica as it is now, unless it is kept already. */
  keepReplica(save: (most: number) => SavedReplica | undefined): Promise<void>;
  /** Forget the session: it was deleted, or may not be seen any more. */
  forget(prompts: readonly PromptParams[]): void;
  private attempt;
}
//#endregion
export { ToolPart as $, ApprovalResponse as A, Part as B, Closed as C, WelcomeInfo as D, SyncPayload as E, InteractionPart as F, QuestionOption as G, ProviderMetadata as H, InteractionRequest as I, SessionInfo as J, QuestionResponse as K, InteractionResponse as L, DataPart as M, ErrorPart as N, ActionPart as O, FilePart as P, TextPart as Q, Message as R, Timers as S, Signal as T, Question as U, PartBase as V, QuestionAnswer as W, StepStartPart as X, SourcePart as Y, StreamState as Z, Params as _, TurnHandle as a, ValueMap as at, PromptResult as b, Replica as c, JSON_CODEC as ct, PageOutcome as d, ToolState as et, Exchange as f, Page as g, Delivery as h, HandleState as i, Value as it, ContextPart as j, ApprovalMode as k, SavedReplica as l, loadMsgpack as lt, Cursor as m, Store as n, TurnFailure as nt, TurnOwner as o, MidstreamError as ot, CancelQueue as p, ReasoningPart as q, memoryStore as r, UserPart as rt, Changes as s, Codec as st, Keeper as t, Turn as tt, Outcome as u, PendingInteraction as v, SessionFrame as w, StopResult as x, PromptParams as y, Origin as z };