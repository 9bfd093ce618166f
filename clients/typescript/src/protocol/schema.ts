/**
 * Readers: they take what came over the wire and return it as a type, or say which field is wrong.
 * What they return has the known fields only, so that unknown ones are in no digest (SPEC 3.2, 5.6).
 */
import { invalid } from "./errors.js";
import type {
  InteractionRequest,
  InteractionResponse,
  Message,
  Origin,
  Part,
  ProviderMetadata,
  Question,
  QuestionOption,
  SessionInfo,
  Turn,
  Value,
  ValueMap,
} from "./model.js";

/** Returns the value as its type, or throws `invalid` with the path of what is wrong. */
export type Reader<T> = (value: unknown, path: string) => T;

type OptionalKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];
/** A reader for each field; an optional field's may give undefined. */
export type Fields<T> = {
  [K in keyof T]-?: K extends OptionalKeys<T> ? Reader<Exclude<T[K], undefined> | undefined> : Reader<T[K]>;
};

/** Return the path of a field of what is at `path`. */
const join = (path: string, name: string) => (path ? `${path}.${name}` : name);

const must = (what: string, value: unknown, path: string): never => {
  throw invalid(path, value === undefined ? "is missing" : `must be ${what}`);
};

export const text: Reader<string> = (value, path) =>
  typeof value === "string" ? value : must("a string", value, path);

export const flag: Reader<boolean> = (value, path) =>
  typeof value === "boolean" ? value : must("a boolean", value, path);

/** An integer that is not negative, and below 2^53. */
export const count: Reader<number> = (value, path) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : must("a count", value, path);

/** Any value at all; a server's values are not looked into. */
export const value: Reader<Value> = (given, path) =>
  given === undefined ? must("a value", given, path) : (given as Value);

export const isMap = (given: unknown): given is Record<string, unknown> =>
  typeof given === "object" && given !== null && !Array.isArray(given);

export const map: Reader<ValueMap> = (given, path) =>
  isMap(given) ? (given as ValueMap) : must("a map", given, path);

export const nullable =
  <T>(reader: Reader<T>): Reader<T | null> =>
  (given, path) =>
    given === null ? null : reader(given, path);

export const maybe =
  <T>(reader: Reader<T>): Reader<T | undefined> =>
  (given, path) =>
    given === undefined ? undefined : reader(given, path);

/** Like `maybe`; the usual value is left out, so that writing it or not is the same. */
const unlessUsual =
  <T>(reader: Reader<T>, isUsual: (given: T) => boolean): Reader<T | undefined> =>
  (given, path) => {
    const read = maybe(reader)(given, path);
    return read === undefined || isUsual(read) ? undefined : read;
  };

export const word =
  <T extends string>(...words: readonly T[]): Reader<T> =>
  (given, path) =>
    words.includes(given as T) ? (given as T) : must(`one of ${words.join(", ")}`, given, path);

export const list =
  <T>(item: Reader<T>): Reader<T[]> =>
  (given, path) =>
    Array.isArray(given) ? given.map((one, at) => item(one, `${path}[${at}]`)) : must("a list", given, path);

export const pair =
  <A, B>(first: Reader<A>, second: Reader<B>): Reader<[A, B]> =>
  (given, path) =>
    Array.isArray(given)
      ? [first(given[0], `${path}[0]`), second(given[1], `${path}[1]`)]
      : must("a pair", given, path);

export const struct = <T extends object>(fields: Fields<T>): Reader<T> => {
  const all = Object.entries(fields) as [string, Reader<unknown>][];
  return (given, path) => {
    if (!isMap(given)) {
      return must("a map", given, path);
    }
    const made: Record<string, unknown> = {};
    for (const [name, reader] of all) {
      const read = reader(given[name], join(path, name));
      if (read !== undefined) {
        made[name] = read;
      }
    }
    return made as T;
  };
};

type Tagged<K extends string> = { readonly [key in K]: string };
type Kinds<T extends Tagged<K>, K extends string> = {
  [N in T[K]]: Fields<Omit<Extract<T, { readonly [key in K]: N }>, K>>;
};

/** One of several structs, which its field `tag` names. */
const union = <T extends Tagged<K>, K extends string>(tag: K, kinds: Kinds<T, K>): Reader<T> => {
  const readers = new Map<string, Reader<object>>();
  for (const [name, fields] of Object.entries(kinds)) {
    readers.set(name, struct({ [tag]: text, ...(fields as object) } as Fields<object>));
  }
  return (given, path) => {
    const name = isMap(given) ? given[tag] : undefined;
    const reader = readers.get(name as string) ?? must("a known type", name, join(path, tag));
    return reader(given, path) as T;
  };
};

const providers = map as Reader<ProviderMetadata>;
const base = {
  // absent in input alone, where the server then gives them
  part_id: ((given, path) => (given === undefined ? "" : text(given, path))) as Reader<string>,
  sequence: ((given, path) => (given === undefined ? 0 : count(given, path))) as Reader<number>,
  step_id: maybe(text),
};
const streamState = word("streaming", "done");

export const response: Reader<InteractionResponse> = union<InteractionResponse, "kind">("kind", {
  approval: { decision: word("approved", "denied"), reason: maybe(text) },
  question: {
    answers: list(
      struct({
        question_id: text,
        value: ((given, path) => (Array.isArray(given) ? list(text) : text)(given, path)) as Reader<
          string | string[]
        >,
      }),
    ),
  },
});

const question: Reader<Question> = struct<Question>({
  question_id: text,
  question: text,
  options: maybe(list(struct<QuestionOption>({ value: text, label: maybe(text), description: maybe(text) }))),
  multiple: maybe(flag),
});

export const part: Reader<Part> = union<Part, "type">("type", {
  text: { ...base, text, state: maybe(streamState), provider_metadata: maybe(providers) },
  reasoning: { ...base, text, state: streamState, provider_metadata: maybe(providers) },
  context: { ...base, tag: text, context: text },
  file: { ...base, url: text, media_type: text, filename: maybe(text), provider_metadata: maybe(providers) },
  data: { ...base, data_type: text, data: value, data_id: maybe(text) },
  source: {
    ...base,
    source_type: word("url", "document"),
    source_id: text,
    url: maybe(text),
    title: maybe(text),
    media_type: maybe(text),
    filename: maybe(text),
    provider_metadata: maybe(providers),
  },
  tool: {
    ...base,
    tool_call_id: text,
    tool_name: text,
    state: word("input-streaming", "ready", "waiting-user", "running", "completed", "failed"),
    input_text: maybe(text),
    input: maybe(value),
    output: maybe(value),
    error: maybe(text),
    title: maybe(text),
    tool_metadata: maybe(map),
    dynamic: maybe(flag),
    raw_input: maybe(text),
    preliminary: maybe(flag),
    call_provider_metadata: maybe(providers),
    result_provider_metadata: maybe(providers),
    provider_executed: maybe(flag),
  },
  interaction: {
    ...base,
    interaction_id: text,
    interaction_type: word("approval", "question"),
    status: word("pending", "resolved", "expired", "cancelled"),
    request: struct<InteractionRequest>({
      title: text,
      description: maybe(text),
      questions: maybe(list(question)),
      expires_at: maybe(count),
    }),
    response: maybe(response),
    resolved_at: maybe(count),
    resolved_by: maybe(text),
    cancel_reason: maybe(word("turn_stopped", "session_disposed", "runtime_interrupted")),
    tool_call_id: maybe(text),
    approval_mode: maybe(word("always-allow")),
  },
  action: {
    ...base,
    action_id: text,
    action_type: text,
    state: word("running", "completed", "failed"),
    title: text,
    description: maybe(text),
    data: maybe(map),
  },
  error: { ...base, scope: word("session", "turn"), code: text, message: text, recoverable: flag },
  "step-start": base,
});

const origin: Reader<Origin> = struct<Origin>({ session_id: text, message_id: text, turn_id: maybe(text) });

/** The fields that a message has of its own, beside `sequence`, `revision` and its parts. */
export const ownFields = {
  message_id: text,
  session_id: text,
  turn_id: maybe(text),
  role: word("user", "agent"),
  visibility: word("visible", "internal"),
  created_at: count,
  updated_at: count,
  origin: maybe(origin),
  state: maybe(streamState),
};

export const message: Reader<Message> = struct<Message>({
  ...ownFields,
  sequence: count,
  revision: count,
  parts: list(part),
});

export const turn: Reader<Turn> = struct<Turn>({
  turn_id: text,
  revision: count,
  state: word("running", "completed", "failed", "stopped"),
  phase: word("starting", "waiting-model", "streaming", "running-tool", "waiting-user"),
  phase_since: count,
  started_at: count,
  finished_at: maybe(count),
  error: maybe(struct({ code: text, message: text })),
});

export const session: Reader<SessionInfo> = struct<SessionInfo>({
  session_id: text,
  revision: count,
  title: maybe(text),
  metadata: unlessUsual(map, (given) => Object.keys(given).length === 0),
  created_at: count,
  updated_at: count,
  archived_at: maybe(count),
  first_sequence: unlessUsual(count, (given) => given === 1),
  message_count: count,
  running_turn_id: maybe(text),
  queue: unlessUsual(list(text), (given) => given.length === 0),
  pending_interactions: unlessUsual(count, (given) => given === 0),
  approval_mode: unlessUsual(word("ask", "always-allow"), (given) => given === "ask"),
  approval_mode_by: maybe(text),
  summarized_through: unlessUsual(count, (given) => given === 0),
});
