/**
 * The messages that a replica holds: one contiguous range, and how entries merge into it (SPEC 4.4).
 *
 * What changes several messages is computed first and then put in place, so that a reader never sees half
 * of it. Messages are never changed, only replaced: one that did not change stays the same object, and so
 * do its parts.
 */
import type { Delta, MessageEntry } from "./frames.js";
import type { Message, Part } from "./model.js";
import { Misfit, type ReplicaChange, restart } from "./outcomes.js";

/** One message as it will be, and what that changes. */
export interface Step {
  readonly message: Message;
  readonly changes: readonly ReplicaChange[];
}

const NEW_FIELDS = ["message_id", "session_id", "role", "visibility", "created_at"] as const;

/** Messages by sequence, from `first` upward; with `first` undefined the window is not open yet. */
export class Window {
  readonly #sessionId: string;
  readonly #end: number;
  #held = new Map<number, Message>();
  #ids = new Map<string, number>();
  #snapshot: readonly Message[] | undefined;

  /** `end` is the sequence above the last, where the window is to be joined to another. */
  constructor(
    sessionId: string,
    public first?: number,
    end = Number.POSITIVE_INFINITY,
  ) {
    this.#sessionId = sessionId;
    this.#end = end;
  }

  get size(): number {
    return this.#held.size;
  }

  /** The messages, ascending: the same list until something changes. */
  messages(): readonly Message[] {
    this.#snapshot ??= [...this.#held.values()].sort((a, b) => a.sequence - b.sequence);
    return this.#snapshot;
  }

  message(messageId: string): Message | undefined {
    const sequence = this.#ids.get(messageId);
    return sequence === undefined ? undefined : this.#held.get(sequence);
  }

  /** Hold these messages, in place of those of the same sequence. */
  put(messages: Iterable<Message>): void {
    for (const message of messages) {
      this.#held.set(message.sequence, message);
      this.#ids.set(message.message_id, message.sequence);
    }
    this.#snapshot = undefined;
  }

  /** Take over the messages of the window that ends where this one begins, and its lower end. */
  join(earlier: Window): void {
    this.put(earlier.held.values());
    this.first = earlier.first;
  }

  /** Move the lower end up to `first`; say whether messages left. */
  dropBelow(first: number): boolean {
    const before = this.#held.size;
    for (const [sequence, message] of this.#held) {
      if (sequence < first) {
        this.#held.delete(sequence);
        this.#ids.delete(message.message_id);
        this.#snapshot = undefined;
      }
    }
    if (this.first !== undefined) {
      this.first = Math.max(this.first, first);
    }
    return this.#held.size < before;
  }

  /** Apply a delta; undefined where the message is below the window or newer. @throws Misfit */
  append(delta: Delta): ReplicaChange | undefined {
    const { message_sequence: sequence, part_sequence, version, text } = delta;
    const message = this.#held.get(sequence);
    if (!message) {
      if (this.#covers(sequence)) {
        throw restart(`a delta to message ${sequence}, which is unknown`);
      }
      return undefined;
    }
    if (version <= message.revision) {
      return undefined;
    }
    const parts = [...message.parts];
    const part = appendTo(parts, part_sequence, text);
    const updated_at = message.created_at + delta.elapsed;
    this.#held.set(sequence, { ...message, revision: version, updated_at, parts });
    this.#snapshot = undefined;
    return appended(message.message_id, part.part_id, sequence, version, text);
  }

  /**
   * Compute what the entries make of the messages; changes nothing.
   *
   * `version` is the frame's. `since` is what a sync starts from, whose entries may have revisions of their
   * own. Messages below `below` are ignored, as those below the window are.
   *
   * @throws Misfit
   */
  plan(
    entries: readonly MessageEntry[] | undefined,
    at: { version: number; since?: number; below: number; durable: number },
  ): Step[] {
    const steps: Step[] = [];
    const seen = new Set<number>();
    for (const entry of entries ?? []) {
      const { sequence } = entry;
      if (seen.has(sequence)) {
        throw restart(`message ${sequence} stands twice`);
      }
      seen.add(sequence);
      const revision = at.since === undefined ? at.version : (entry.revision ?? at.version);
      const before = this.#held.get(sequence);
      if (this.#covers(sequence) && sequence >= at.below && revision > (before?.revision ?? -1)) {
        this.#check(entry, before);
        steps.push(merged(before, entry, revision, at.since, revision <= at.durable));
      }
    }
    return steps;
  }

  /** Put in place what was planned, and return what changed. */
  carryOut(steps: readonly Step[]): ReplicaChange[] {
    this.put(steps.map((step) => step.message));
    return steps.flatMap((step) => step.changes);
  }

  #covers(sequence: number): boolean {
    return this.first !== undefined && this.first <= sequence && sequence < this.#end;
  }

  #check(entry: MessageEntry, before: Message | undefined): void {
    const { sequence, session_id, message_id } = entry;
    const isForeign = session_id !== undefined && session_id !== this.#sessionId;
    if (isForeign || (message_id !== undefined && (this.#ids.get(message_id) ?? sequence) !== sequence)) {
      throw restart(`message ${sequence} is of another session, or has the id of another message`);
    }
    if (before && message_id !== undefined && message_id !== before.message_id) {
      throw restart(`message ${sequence} has another id`);
    }
    if (!before && NEW_FIELDS.some((name) => entry[name] === undefined)) {
      throw restart(`a piece of message ${sequence}, which is unknown`);
    }
  }
}

function merged(
  before: Message | undefined,
  entry: MessageEntry,
  revision: number,
  since: number | undefined,
  durable: boolean,
): Step {
  const { parts: whole = [], appends = [], ended = [], part_count, ...own } = entry;
  const { sequence } = entry;
  if (appends.length || ended.length) {
    if (!before) {
      throw restart(`text for message ${sequence}, which is unknown`);
    }
    if (since === undefined || before.revision > since) {
      throw new Misfit({ kind: "gap", reason: `text for message ${sequence} that begins below its revision` });
    }
  }
  const parts = [...(before?.parts ?? [])];
  const known = parts.length;
  const changed = new Set<number>();
  let lost = part_count < known;
  for (const part of [...whole].sort((a, b) => a.sequence - b.sequence)) {
    if (part.sequence < 1 || part.sequence > parts.length + 1) {
      throw restart(`part ${part.sequence} of message ${sequence} would leave a hole`);
    }
    lost ||= part.sequence <= known && parts[part.sequence - 1]?.part_id !== part.part_id;
    parts[part.sequence - 1] = part;
    changed.add(part.sequence);
  }
  const texts: ReplicaChange[] = [];
  const message_id = before?.message_id ?? (entry.message_id as string);
  for (const [at, text] of appends) {
    const part = changed.has(at) ? undefined : appendTo(parts, at, text);
    if (!part || at > part_count) {
      throw restart(`text for part ${at} of message ${sequence}, which is whole or gone`);
    }
    texts.push(appended(message_id, part.part_id, sequence, revision, text));
  }
  for (const at of ended) {
    const part = changed.has(at) ? undefined : growing(parts, at);
    if (!part || part.type === "tool" || at > part_count) {
      throw restart(`the end of part ${at} of message ${sequence}, which is whole, gone or a tool`);
    }
    parts[at - 1] = { ...part, state: "done" };
  }
  if (part_count > parts.length) {
    throw restart(`message ${sequence} has ${part_count} parts, but ${parts.length} are known`);
  }
  parts.length = part_count;
  const message = { ...before, ...own, revision, parts } as Message;
  if (before && texts.length && !whole.length && !ended.length && !lost && isSameBesideText(before, own)) {
    return { message, changes: texts };
  }
  for (const at of [...appends.map(([at]) => at), ...ended]) {
    changed.add(at);
  }
  const kept = [...changed].filter((at) => at <= part_count).sort((a, b) => a - b);
  return {
    message,
    changes: [{ kind: "message", message_id, sequence, revision, isNew: !before, parts: kept, durable, lost }],
  };
}

/** Whether an entry's own fields change nothing but the time and the revision. */
function isSameBesideText(before: Message, own: Partial<Message>): boolean {
  return (Object.keys(own) as (keyof Message)[]).every(
    (name) => name === "updated_at" || name === "revision" || name === "origin" || own[name] === before[name],
  );
}

const appended = (
  message_id: string,
  part_id: string,
  sequence: number,
  revision: number,
  text: string,
): ReplicaChange => ({ kind: "appended", message_id, part_id, sequence, revision, text });

/** Put the part with more text in its place, and return it. @throws Misfit */
function appendTo(parts: Part[], sequence: number, text: string): Part {
  const part = growing(parts, sequence);
  const grown: Part =
    part.type === "tool"
      ? { ...part, input_text: (part.input_text ?? "") + text }
      : { ...part, text: part.text + text };
  parts[sequence - 1] = grown;
  return grown;
}

/** Return the part that text can be appended to. @throws Misfit */
function growing(parts: readonly Part[], sequence: number): Extract<Part, { type: "text" | "reasoning" | "tool" }> {
  const part = parts[sequence - 1];
  if (part && canGrow(part)) {
    return part;
  }
  throw restart(`text for part ${sequence}, which cannot grow`);
}

/** Whether a delta may follow. */
export const canGrow = (part: Part): part is Extract<Part, { type: "text" | "reasoning" | "tool" }> =>
  part.type === "tool"
    ? part.state === "input-streaming"
    : (part.type === "text" || part.type === "reasoning") && part.state === "streaming";
