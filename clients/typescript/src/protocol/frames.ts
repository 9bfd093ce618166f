/** The frames that a client gets and sends (SPEC 3). On the wire they are arrays; here they have names. */
import { malformed } from "./errors.js";
import { DEFAULT_LIMITS, type Limits } from "./limits.js";
import type { Message, Part, SessionInfo, Turn, Value, ValueMap } from "./model.js";
import { checkMap, fieldsOf } from "./schema.js";

/** The server's answer to `hello`. */
export interface WelcomeInfo {
  readonly connection_id: string;
  readonly server: string;
  readonly time: number;
  readonly heartbeat_ms: number;
  readonly limits: Partial<Limits>;
  readonly subject: string;
  readonly scopes: readonly string[];
  /** In how many ms the token expires; absent where it never does. */
  readonly token_ms?: number;
}

/** A refusal as it comes over the wire. */
export interface ErrorInfo {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: ValueMap;
}

/** What became of one message (SPEC 3.4); all its own fields are there when it is new. */
export interface MessageEntry extends Partial<Omit<Message, "parts" | "sequence" | "updated_at">> {
  readonly sequence: number;
  readonly updated_at: number;
  readonly part_count: number;
  readonly parts?: readonly Part[];
  readonly appends?: readonly (readonly [number, string])[];
  readonly ended?: readonly number[];
}

/** Everything that one version touched. */
export interface ChangeContent {
  readonly messages?: readonly MessageEntry[];
  readonly turns?: readonly Turn[];
  readonly session?: SessionInfo;
}

/** What brings a replica up to a version (SPEC 3.8). */
export interface SyncPayload extends ChangeContent {
  readonly mode: "replay" | "catchup" | "reset";
  readonly from?: number;
  readonly epoch: string;
  readonly version: number;
  readonly durable?: number;
  readonly next_before_sequence?: number;
  readonly has_more?: boolean;
}

interface Elements {
  welcome: { readonly info: WelcomeInfo };
  result: { readonly id: number; readonly result: unknown };
  error: { readonly id: number | null; readonly error: ErrorInfo };
  ping: { readonly nonce: number };
  pong: { readonly nonce: number; readonly time: number };
  d: {
    readonly channel: number;
    readonly version: number;
    /** In ms since the message's `created_at`; in a short delta, since its `updated_at`. */
    readonly elapsed: number;
    /** Both are absent in a short delta, which goes to the last part of the session's last message. */
    readonly message_sequence?: number;
    readonly part_sequence?: number;
    readonly text: string;
  };
  change: {
    readonly channel: number;
    readonly version: number;
    readonly durable: boolean;
    readonly content: ChangeContent;
  };
  skip: { readonly channel: number; readonly from_version: number; readonly version: number };
  sync: { readonly channel: number; readonly payload: SyncPayload };
  mark: { readonly channel: number; readonly version: number };
  closed: { readonly channel: number; readonly code: string; readonly retryable: boolean };
  signal: { readonly channel: number; readonly sender: string; readonly name: string; readonly data: Value };
  goaway: { readonly reason: string; readonly reconnect_after_ms: number };
  chunk: { readonly n: number; readonly last: boolean; readonly piece: Uint8Array | string };
}

type Tag = keyof Elements;
type Frame<T extends Tag> = { [K in T]: { readonly tag: K } & Elements[K] }[T];

export type ServerFrame = Frame<Tag>;
export type Delta = Frame<"d">;
export type Change = Frame<"change">;
export type Sync = Frame<"sync">;
export type Closed = Frame<"closed">;
export type Signal = Frame<"signal">;
export type Chunk = Frame<"chunk">;
export type ErrorFrame = Frame<"error">;
/** The frames that the merge law speaks of. */
export type SessionFrame = Frame<"d" | "change" | "skip" | "sync" | "mark">;

/** The elements of each frame after its tag, in order; and of the short delta, which has none. */
export const FRAMES: { readonly [T in Tag | ""]: string } = {
  welcome: "info:Welcome",
  result: "id:count result:map",
  error: "id:count~ error:Error",
  ping: "nonce:count",
  pong: "nonce:count time:count",
  d: "channel:count version:count elapsed:count message_sequence:count part_sequence:count text",
  "": "channel:count version:count elapsed:count text",
  change: "channel:count version:count durable:flag content:Content",
  skip: "channel:count from_version:count version:count",
  sync: "channel:count payload:Sync",
  mark: "channel:count version:count",
  closed: "channel:count code retryable:flag",
  signal: "channel:count sender name data:value",
  goaway: "reason reconnect_after_ms:count",
  chunk: "n:count last:flag piece:piece",
};
const FIELDS = new Map(Object.entries(FRAMES).map(([tag, table]) => [tag, fieldsOf(table)]));

/** Read frames of this tag, with one map, from now on: a program that has no use for them ignores them. */
export const readAlso = (tag: string, name: string, table: string): void => {
  FIELDS.set(tag, [[name, (value) => checkMap(table, value)]]);
};

/**
 * Read a decoded frame of a server; undefined for a tag that is not known here, which is to be ignored.
 *
 * @throws MidstreamError `malformed`: it is no frame. `invalid`: an element is wrong; the connection ends.
 */
export function readServerFrame(frame: unknown): ServerFrame | undefined {
  const first: unknown = Array.isArray(frame) && frame[0];
  const tag = typeof first === "number" ? "" : first;
  if (typeof tag !== "string") {
    throw malformed("no array with a tag");
  }
  const fields = FIELDS.get(tag);
  if (!fields) {
    return undefined;
  }
  const made: Record<string, unknown> = { tag: tag || "d" };
  for (const [at, [name, check]] of fields.entries()) {
    const element = (frame as unknown[])[tag ? at + 1 : at];
    check(element, name);
    made[name] = element;
  }
  return made as unknown as ServerFrame;
}

/** Return all limits of a welcome; those that the server did not tell are the usual ones. */
export const limitsOf = (welcome: WelcomeInfo): Limits => ({
  ...DEFAULT_LIMITS,
  ...(welcome.limits as Limits),
});
