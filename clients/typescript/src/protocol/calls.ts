/** The calls that a client makes, and how their results are read (SPEC 7). */
import { invalid } from "./errors.js";
import { type SyncPayload, syncPayload } from "./frames.js";
import type { InteractionPart, InteractionResponse, Message, SessionInfo, Turn, UserPart } from "./model.js";
import { count, flag, list, maybe, message, nullable, part, type Reader, session, struct, text, turn, word } from "./schema.js";

/** How far a replica has come. */
export interface Cursor {
  readonly epoch: string;
  readonly version: number;
  readonly durable: number;
}

export type Delivery = "auto" | "queue" | "reject" | "interrupt";
export type CancelQueue = "own" | "all" | "none";

export interface PromptParams {
  readonly session_id: string;
  readonly message_id: string;
  readonly parts: readonly UserPart[];
  readonly delivery: Delivery;
}

export interface PromptResult {
  readonly state: "started" | "queued" | "absorbed" | "cancelled";
  readonly message_id: string;
  readonly turn_id?: string;
  readonly position?: number;
}

export interface StopResult {
  readonly stopped: boolean;
  readonly turn_id?: string;
  readonly cancelled: readonly string[];
  readonly reason: "stopped" | "idle";
}

export interface SubscribeResult {
  readonly channel: number;
  readonly sync: SyncPayload;
}

/** A page of whole messages. */
export interface Page {
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

export interface PendingInteraction {
  readonly message_id: string;
  readonly message_sequence: number;
  readonly turn_id?: string;
  readonly interaction: InteractionPart;
}

export interface VerifyResult {
  readonly version: number;
  readonly epoch: string;
  readonly digests: readonly (readonly [number, number, string])[];
}

export interface SessionResult {
  readonly session: SessionInfo;
  readonly epoch: string;
  readonly version: number;
}

interface OfSession {
  readonly session_id: string;
}

/** Each method: its params and its result. */
export interface Calls {
  subscribe: [
    OfSession & { cursor?: Cursor | undefined; limit: number; include_internal: boolean; pace_ms?: number | undefined },
    SubscribeResult,
  ];
  unsubscribe: [OfSession, object];
  messages: [OfSession & { limit: number; before_sequence?: number | undefined; include_internal: boolean }, Page];
  turn: [OfSession & { turn_id?: string }, { readonly turn: Turn | null }];
  prompt: [PromptParams, PromptResult];
  stop: [OfSession & { turn_id: string; cancel_queue: CancelQueue }, StopResult];
  respond: [
    OfSession & { interaction_id: string; response: InteractionResponse },
    { readonly interaction: InteractionPart },
  ];
  interactions: [OfSession, { readonly items: readonly PendingInteraction[] }];
  cancel_input: [OfSession & { message_id: string }, PromptResult];
  verify: [OfSession & { from_sequence: number; to_sequence: number; include_internal: boolean }, VerifyResult];
  signal: [OfSession & { name: string; data: unknown }, object];
  "sessions.create": [{ session_id?: string | undefined; key: string; title?: string | undefined; metadata?: object | undefined }, SessionResult];
  "sessions.get": [OfSession, SessionResult];
  "sessions.list": [
    { limit: number; after?: string | undefined; archived: boolean },
    { readonly items: readonly SessionInfo[]; readonly next_after?: string },
  ];
  "sessions.update": [OfSession & { title?: string | null | undefined; metadata?: object | undefined }, SessionResult];
  "sessions.clear": [OfSession, SessionResult];
  "sessions.archive": [OfSession & { archived: boolean }, SessionResult];
  "sessions.approval_mode": [OfSession & { approval_mode: string }, SessionResult];
  "sessions.fork": [
    OfSession & { message_id?: string | undefined; new_session_id?: string | undefined; key: string; title?: string | undefined },
    SessionResult,
  ];
  "sessions.delete": [OfSession, object];
}

export type Method = keyof Calls;
export type Params<M extends Method> = Calls[M][0];
export type ResultOf<M extends Method> = Calls[M][1];

const interaction: Reader<InteractionPart> = (given, path) => {
  const read = part(given, path);
  if (read.type !== "interaction") {
    throw invalid(path, "must be an interaction");
  }
  return read;
};

const promptResult = struct<PromptResult>({
  state: word("started", "queued", "absorbed", "cancelled"),
  message_id: text,
  turn_id: maybe(text),
  position: maybe(count),
});
const sessionResult = struct<SessionResult>({ session, epoch: text, version: count });
const empty = struct<object>({});
const digest: Reader<readonly [number, number, string]> = (given, path) => {
  const [sequence, revision, digits]: readonly unknown[] = Array.isArray(given) ? given : [];
  return [count(sequence, path), count(revision, path), text(digits, path)];
};

/** How the result of each method is read. */
export const RESULTS: { readonly [M in Method]: Reader<ResultOf<M>> } = {
  subscribe: struct<SubscribeResult>({ channel: count, sync: syncPayload }),
  unsubscribe: empty,
  messages: struct<Page>({
    items: list(message),
    total: count,
    start_sequence: maybe(count),
    end_sequence: maybe(count),
    next_before_sequence: maybe(count),
    has_more: flag,
    include_internal: flag,
    before_sequence: maybe(count),
    turns: list(turn),
    epoch: text,
    version: count,
  }),
  turn: struct<{ readonly turn: Turn | null }>({ turn: nullable(turn) }),
  prompt: promptResult,
  stop: struct<StopResult>({
    stopped: flag,
    turn_id: maybe(text),
    cancelled: list(text),
    reason: word("stopped", "idle"),
  }),
  respond: struct<{ readonly interaction: InteractionPart }>({ interaction }),
  interactions: struct<{ readonly items: readonly PendingInteraction[] }>({
    items: list(
      struct<PendingInteraction>({
        message_id: text,
        message_sequence: count,
        turn_id: maybe(text),
        interaction,
      }),
    ),
  }),
  cancel_input: promptResult,
  verify: struct<VerifyResult>({ version: count, epoch: text, digests: list(digest) }),
  signal: empty,
  "sessions.create": sessionResult,
  "sessions.get": sessionResult,
  "sessions.list": struct<{ readonly items: readonly SessionInfo[]; readonly next_after?: string }>({
    items: list(session),
    next_after: maybe(text),
  }),
  "sessions.update": sessionResult,
  "sessions.clear": sessionResult,
  "sessions.archive": sessionResult,
  "sessions.approval_mode": sessionResult,
  "sessions.fork": sessionResult,
  "sessions.delete": empty,
};
