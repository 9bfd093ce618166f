/**
 * The form of what comes over the wire, as far as a client goes by it (SPEC 3), and the check against it.
 *
 * What a client only passes on, such as the fields of a tool part, the server has checked. A table is a list
 * of `name:type`; without a type it is a text. `name?` may be absent. Types are the checks below, other
 * tables, words (`a|b`), lists (`type[]`), and `type~`, which may be null.
 */
import { invalid } from "./errors.js";

const ENTITIES = "messages?:Entry[] turns?:Turn[] session?:Session";

const TABLES: { readonly [name: string]: string } = {
  Part:
    "type:text|reasoning|context|file|data|source|tool|interaction|action|error|step-start part_id sequence:count " +
    "text? state? input_text?",
  Message:
    "message_id session_id turn_id? sequence:count revision:count created_at:count updated_at:count parts:Part[]",
  Entry:
    "message_id? session_id? turn_id? sequence:count revision?:count role?:user|agent visibility?:visible|internal " +
    "created_at?:count updated_at:count state? part_count:count parts?:Part[] appends?:Append[] ended?:count[]",
  Turn: "turn_id revision:count state:running|completed|failed|stopped",
  Session:
    "session_id revision:count first_sequence?:count message_count:count running_turn_id? queue?:text[] updated_at:count",
  Content: ENTITIES,
  Sync: `${ENTITIES} mode:replay|catchup|reset from?:count epoch version:count durable?:count has_more?:flag`,
  Welcome: "heartbeat_ms:count limits:map token_ms?:count",
  Error: "code message retryable:flag details?:map",
};

/** Throws `invalid` with the path of what is wrong. */
type Check = (value: unknown, path: string) => void;

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Test = (value: unknown) => unknown;

const must =
  (what: string, fits: Test): Check =>
  (value, path) => {
    if (!fits(value)) {
      throw invalid(path, value === undefined ? "is missing" : `must be ${what}`);
    }
  };

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const TESTS: { readonly [type: string]: Test } = {
  text: isText,
  count: isCount,
  flag: (value) => typeof value === "boolean",
  value: (value) => value !== undefined,
  map: isMap,
  list: Array.isArray,
  Append: (value) => Array.isArray(value) && isCount(value[0]) && isText(value[1]),
  piece: (value) => (isText(value) || value instanceof Uint8Array) && value.length,
};

const checks = new Map<string, Check>();

/** Return the check of a type; made when it is first needed. */
function checkOf(type: string): Check {
  const check = checks.get(type) ?? madeCheck(type);
  checks.set(type, check);
  return check;
}

function madeCheck(type: string): Check {
  const test = TESTS[type];
  if (test) {
    return must(`a ${type}`, test);
  }
  if (type.endsWith("~")) {
    return (value, path) => value === null || checkOf(type.slice(0, -1))(value, path);
  }
  if (type.endsWith("[]")) {
    return (value, path) => {
      checkOf("list")(value, path);
      for (const [at, item] of (value as unknown[]).entries()) {
        checkOf(type.slice(0, -2))(item, `${path}[${at}]`);
      }
    };
  }
  const table = TABLES[type] ?? type;
  if (!/[ :]/.test(table)) {
    return must(`one of ${table}`, (value) => table.split("|").includes(value as string));
  }
  const fields = fieldsOf(table);
  return (value, path) => {
    checkOf("map")(value, path);
    for (const [name, check] of fields) {
      check((value as Record<string, unknown>)[name], path ? `${path}.${name}` : name);
    }
  };
}

/** The fields of a table: their names and checks. */
export const fieldsOf = (table: string): [string, Check][] =>
  table.split(" ").map((field) => {
    const [, name = "", optional, type = "text"] = /^(\w+)(\?)?:?(.+)?$/.exec(field) ?? [];
    return [name, (value, path) => (optional && value === undefined) || checkOf(type)(value, path)];
  });

/** Check a map by a table. @throws MidstreamError `invalid` */
export const checkMap = (table: string, value: unknown): void => checkOf(table)(value, "");
