/** The frames that a client gets and sends (SPEC 3). On the wire they are arrays; here they have names. */
import { invalid, malformed } from "./errors.js";
import { DEFAULT_LIMITS, type Limits } from "./limits.js";
import type { Message, Part, SessionInfo, Turn, Value, ValueMap } from "./model.js";
import {
  count,
  type Fields,
  flag,
  list,
  map,
  maybe,
  nullable,
  ownFields,
  pair,
  part,
  type Reader,
  session,
  struct,
  text,
  turn,
  value,
  word,
} from "./schema.js";

/** The server's answer to `hello`. */
export interface WelcomeInfo {
  readonly connection_id: string;
  readonly server: string;
  readonly time: number;
  readonly heartbeat_ms: number;
  readonly limits: Limits;
  readonly subject: string;
  readonly scopes: readonly string[];
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

const { message_id, session_id, role, visibility, created_at, updated_at, ...optional } = ownFields;
const entry = struct<MessageEntry>({
  ...optional,
  message_id: maybe(message_id),
  session_id: maybe(session_id),
  role: maybe(role),
  visibility: maybe(visibility),
  created_at: maybe(created_at),
  updated_at,
  sequence: count,
  revision: maybe(count),
  part_count: count,
  parts: maybe(list(part)),
  appends: maybe(list(pair(count, text))),
  ended: maybe(list(count)),
});

const content: Fields<ChangeContent> = {
  messages: maybe(list(entry)),
  turns: maybe(list(turn)),
  session: maybe(session),
};

export const syncPayload: Reader<SyncPayload> = struct<SyncPayload>({
  ...content,
  mode: word("replay", "catchup", "reset"),
  from: maybe(count),
  epoch: text,
  version: count,
  durable: maybe(count),
  next_before_sequence: maybe(count),
  has_more: maybe(flag),
});

const piece: Reader<Uint8Array | string> = (given) => {
  if ((typeof given === "string" || given instanceof Uint8Array) && given.length) {
    return given;
  }
  throw malformed("the piece of a chunk is empty or of the wrong type");
};

/** The elements of each frame after its tag, in order. */
const FRAMES: { readonly [T in Tag]: Fields<Elements[T]> } = {
  welcome: {
    info: struct<WelcomeInfo>({
      connection_id: text,
      server: text,
      time: count,
      heartbeat_ms: count,
      limits: (given, path) => ({ ...DEFAULT_LIMITS, ...(map(given, path) as Record<string, number>) }),
      subject: text,
      scopes: list(text),
    }),
  },
  result: { id: count, result: map },
  error: {
    id: nullable(count),
    error: struct<ErrorInfo>({ code: text, message: text, retryable: flag, details: maybe(map) }),
  },
  ping: { nonce: count },
  pong: { nonce: count, time: count },
  d: { channel: count, version: count, elapsed: count, message_sequence: count, part_sequence: count, text },
  change: { channel: count, version: count, durable: flag, content: struct(content) },
  skip: { channel: count, from_version: count, version: count },
  sync: { channel: count, payload: syncPayload },
  mark: { channel: count, version: count },
  closed: { channel: count, code: text, retryable: flag },
  signal: { channel: count, sender: text, name: text, data: value },
  goaway: { reason: text, reconnect_after_ms: count },
  chunk: { n: count, last: flag, piece },
};
const READERS = new Map(Object.entries(FRAMES).map(([tag, fields]) => [tag, Object.entries(fields)]));

/**
 * Read a decoded frame of a server; undefined for a tag that is not known here, which is to be ignored.
 *
 * @throws MidstreamError `malformed`: it is no frame. `invalid`: an element is wrong; the connection ends.
 */
export function readServerFrame(frame: unknown): ServerFrame | undefined {
  if (!Array.isArray(frame) || typeof frame[0] !== "string") {
    throw malformed("it is not an array with a string as its first element");
  }
  const fields = READERS.get(frame[0]);
  if (!fields) {
    return undefined;
  }
  const made: Record<string, unknown> = { tag: frame[0] };
  for (const [at, [name, reader]] of fields.entries()) {
    const element: unknown = frame[at + 1];
    made[name] = element === undefined ? wrong(name, frame[0]) : reader(element, name);
  }
  return made as unknown as ServerFrame;
}

function wrong(name: string, tag: string): never {
  throw tag === "chunk" ? malformed("a chunk is cut short") : invalid(name, "is missing");
}
