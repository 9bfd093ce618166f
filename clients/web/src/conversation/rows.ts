/** What stands in the list, top to bottom: messages, prompts that are on their way, and what lies between. Pure. */
import type { Message, PromptParams, Turn } from "midstream-client";
import { daysBefore } from "../sidebar/groups.js";

/** One row of the list. What did not change is the same values, so that a memoised row stays as it is. */
export interface Row {
  readonly key: string;
  readonly message: Message | undefined;
  /** A prompt that the server has not accepted, in place of a message. */
  readonly prompt: PromptParams | undefined;
  /** The day, where another one begins. */
  readonly day: string | undefined;
  /** How the turn ended, below its last message: only failed and stopped ones. */
  readonly ending: Turn | undefined;
  /** The chat that the messages up to here were copied from, below the last of them. */
  readonly copiedFrom: string | undefined;
  /** The messages up to here were summarized for the agent: the sequence. */
  readonly summarized: number | undefined;
  /** The message follows one of the same writer: they stand closer. */
  readonly goesOn: boolean;
}

/** What rows are made of. */
export interface Content {
  readonly messages: readonly Message[];
  readonly turns: ReadonlyMap<string, Turn>;
  readonly pending: readonly PromptParams[];
  readonly summarizedThrough: number;
  readonly hasEarlier: boolean;
  /** Any time of the present day, in ms; the same one until the day is over. */
  readonly today: number;
}

/** Make the rows. The row of a message is the same object as last time where nothing of it changed. */
export function rowsOf(content: Content): readonly Row[] {
  const { messages, pending } = content;
  const rows = messages.map((message, at) => rowOf(content, message, at));
  return [...rows, ...pending.map((prompt) => ({ ...EMPTY, key: prompt.message_id, prompt }))];
}

const EMPTY: Omit<Row, "key"> = {
  message: undefined,
  prompt: undefined,
  day: undefined,
  ending: undefined,
  copiedFrom: undefined,
  summarized: undefined,
  goesOn: false,
};

/** What a row was made of beside its message. */
interface Made {
  readonly from: readonly unknown[];
  readonly row: Row;
}

const made = new WeakMap<Message, Made>();

function rowOf(content: Content, message: Message, at: number): Row {
  const { messages, turns, summarizedThrough, hasEarlier, today } = content;
  const before = messages[at - 1];
  const after = messages[at + 1];
  const isStart = !before && !hasEarlier;
  const turn = turns.get(message.turn_id ?? "");
  // of a neighbour only what does not change while it is written
  const from = [
    before?.message_id,
    after?.message_id,
    turn && turn.state !== "running" ? turn : undefined,
    summarizedThrough,
    isStart,
    today,
  ];
  const known = made.get(message);
  if (known?.from.every((value, index) => value === from[index])) {
    return known.row;
  }
  const row = makeRow(content, message, before, after);
  made.set(message, { from, row });
  return row;
}

function makeRow(
  { turns, summarizedThrough, hasEarlier, today }: Content,
  message: Message,
  before: Message | undefined,
  after: Message | undefined,
): Row {
  const isOtherDay = before
    ? daysBefore(message.created_at, before.created_at) > 0
    : !hasEarlier && daysBefore(today, message.created_at) > 0;
  const from = message.origin?.session_id;
  return {
    ...EMPTY,
    key: message.message_id,
    message,
    day: isOtherDay ? dayLabel(today, message.created_at) : undefined,
    ending:
      message.turn_id !== undefined && after?.turn_id === message.turn_id
        ? undefined
        : endingOf(message, turns),
    copiedFrom: after?.origin?.session_id === from ? undefined : from,
    summarized: summaryBelow(summarizedThrough, message, after),
    goesOn: !isOtherDay && before?.role === message.role && before.turn_id === message.turn_id,
  };
}

function endingOf(message: Message, turns: ReadonlyMap<string, Turn>): Turn | undefined {
  const turn = turns.get(message.turn_id ?? "");
  return turn?.state === "failed" || turn?.state === "stopped" ? turn : undefined;
}

/** A summary ends below the last visible message that it covers. */
function summaryBelow(through: number, message: Message, after: Message | undefined): number | undefined {
  const isLast = message.sequence <= through && (after === undefined || after.sequence > through);
  return through > 0 && isLast ? through : undefined;
}

/** What a day is called between messages. */
function dayLabel(now: number, at: number, locale?: string): string {
  const days = daysBefore(now, at);
  if (days <= 0) {
    return "Today";
  }
  if (days === 1) {
    return "Yesterday";
  }
  const sameYear = new Date(now).getFullYear() === new Date(at).getFullYear();
  return new Date(at).toLocaleDateString(locale, {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
  });
}

/** Whether rows were put before the ones of last time: the list must then keep its place from the end. */
export function grewAtStart(before: string | undefined, rows: readonly Row[]): boolean {
  return before !== undefined && rows[0]?.key !== before && rows.some((row) => row.key === before);
}
