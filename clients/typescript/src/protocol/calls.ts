/** The calls that a client makes, and how their results are read (SPEC 7). */
import type { SyncPayload } from "./frames.js";
import type { InteractionPart, InteractionResponse, Message, SessionInfo, Turn, UserPart } from "./model.js";
import { checkMap } from "./schema.js";

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
  /** Where a segment was asked: what the page holds, the summary, and whether the segment has more below. */
  readonly source?: "active" | "segment";
  readonly summary?: Summary;
  readonly cut?: boolean;
}

/** What the messages of a segment said, in few words (SPEC 2.8). */
export interface Summary {
  readonly from_sequence: number;
  readonly through_sequence: number;
  readonly text: string;
  readonly created_at: number;
  readonly subject?: string;
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

/** What a token that was given by `auth` is good for. */
export interface AuthResult {
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly token_ms?: number;
}

interface OfSession {
  readonly session_id: string;
}

/** Each method: its params and its result. */
export interface Calls {
  subscribe: [
    OfSession & {
      cursor?: Cursor | undefined;
      limit: number;
      include_internal: boolean;
      pace_ms?: number | undefined;
    },
    SubscribeResult,
  ];
  unsubscribe: [OfSession, object];
  messages: [
    OfSession & {
      limit: number;
      before_sequence?: number | undefined;
      include_internal: boolean;
      segment?: boolean;
    },
    Page,
  ];
  compact: [OfSession & { through_sequence: number; summary: string }, { readonly summary: Summary }];
  turn: [OfSession & { turn_id?: string }, { readonly turn: Turn | null }];
  prompt: [PromptParams, PromptResult];
  stop: [OfSession & { turn_id: string; cancel_queue: CancelQueue }, StopResult];
  respond: [
    OfSession & { interaction_id: string; response: InteractionResponse },
    { readonly interaction: InteractionPart },
  ];
  interactions: [OfSession, { readonly items: readonly PendingInteraction[] }];
  cancel_input: [OfSession & { message_id: string }, PromptResult];
  verify: [
    OfSession & { from_sequence: number; to_sequence: number; include_internal: boolean },
    VerifyResult,
  ];
  signal: [OfSession & { name: string; data: unknown }, object];
  auth: [{ token: string }, AuthResult];
  "sessions.create": [
    {
      session_id?: string | undefined;
      key: string;
      title?: string | undefined;
      metadata?: object | undefined;
    },
    SessionResult,
  ];
  "sessions.get": [OfSession, SessionResult];
  "sessions.list": [
    { limit: number; after?: string | undefined; archived: boolean },
    { readonly items: readonly SessionInfo[]; readonly next_after?: string },
  ];
  "sessions.watch": [
    { limit: number; archived: boolean },
    { readonly items: readonly SessionInfo[]; readonly next_after?: string },
  ];
  "sessions.unwatch": [object, object];
  "sessions.update": [
    OfSession & { title?: string | null | undefined; metadata?: object | undefined },
    SessionResult,
  ];
  "sessions.clear": [OfSession, SessionResult];
  "sessions.archive": [OfSession & { archived: boolean }, SessionResult];
  "sessions.approval_mode": [OfSession & { approval_mode: string }, SessionResult];
  "sessions.fork": [
    OfSession & {
      message_id?: string | undefined;
      new_session_id?: string | undefined;
      key: string;
      title?: string | undefined;
    },
    SessionResult,
  ];
  "sessions.delete": [OfSession, object];
}

export type Method = keyof Calls;
export type Params<M extends Method> = Calls[M][0];
export type ResultOf<M extends Method> = Calls[M][1];

const PROMPT = "state:started|queued|absorbed|cancelled message_id turn_id? position?:count";

/** What a client goes by in the results; what it only hands on is not looked at. */
const RESULTS: { readonly [M in Method]?: string } = {
  subscribe: "channel:count sync:Sync",
  messages: "items:Message[] has_more:flag turns:Turn[] version:count",
  turn: "turn:Turn~",
  prompt: PROMPT,
  cancel_input: PROMPT,
};

/** Read the result of a call. @throws MidstreamError `invalid`, with the path of what is wrong */
export function readResult<M extends Method>(method: M, result: unknown): ResultOf<M> {
  checkMap(RESULTS[method] ?? "map", result);
  return result as ResultOf<M>;
}
