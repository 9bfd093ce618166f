/**
 * The messages that a replica holds: one contiguous range, and how entries merge into it (SPEC 4.4).
 *
 * What changes several messages is computed first and then put in place, so that a reader never sees half
 * of it. Messages are never changed, only replaced: one that did not change stays the same object, and so
 * do its parts.
 */
import type { Delta, MessageEntry } from "./frames.js";
import type { Message, Part } from "./model.js";
import { must } from "./outcomes.js";

/** Where entries come from. */
export interface Source {
  /** That of the frame. */
  readonly version: number;
  /** What a sync starts from, whose entries may have revisions of their own; undefined for a change. */
  readonly since?: number;
  /** Messages below it are ignored, as those below the window are. */
  readonly below: number;
}

type Growing = Extract<Part, { type: "text" | "reasoning" | "tool" }>;

/** Messages by sequence, from `first` upward; with `first` undefined the window is not open yet. */
export class Window {
  first: number | undefined;
  readonly #sessionId: string;
  readonly #held = new Map<number, Message>();
  readonly #ids = new Map<string, number>();
  #snapshot: readonly Message[] | undefined;

  constructor(sessionId: string, first?: number) {
    this.#sessionId = sessionId;
    this.first = first;
  }

  /** The messages, ascending: the same list until something changes. */
  messages(): readonly Message[] {
    this.#snapshot ??= [...this.#held.values()].sort((a, b) => a.sequence - b.sequence);
    return this.#snapshot;
  }

  message(messageId: string): Message | undefined {
    return this.#held.get(this.#ids.get(messageId) ?? 0);
  }

  /** Hold these messages, in place of those of the same sequence. */
  put(messages: Iterable<Message>): void {
    for (const message of messages) {
      this.#held.set(message.sequence, message);
      this.#ids.set(message.message_id, message.sequence);
    }
    this.#snapshot = undefined;
  }

  /** Move the lower end up to `first`. */
  dropBelow(first: number): void {
    for (const [sequence, { message_id }] of this.#held) {
      if (sequence < first) {
        this.#held.delete(sequence);
        this.#ids.delete(message_id);
        this.#snapshot = undefined;
      }
    }
    if (this.first !== undefined) {
      this.first = Math.max(this.first, first);
    }
  }

  /**
   * Apply a delta; nothing changes where the message is below the window or newer. `last` is the sequence of the
   * session's last message. @throws Misfit
   */
  append(
    last: number,
    { message_sequence: sequence = last, part_sequence, version, text, elapsed }: Delta,
  ): void {
    const message = this.#held.get(sequence);
    if (!message) {
      must(!this.#covers(sequence));
    } else if (version > message.revision) {
      const parts = [...message.parts];
      grow(parts, part_sequence ?? parts.length, text);
      const since = part_sequence ? message.created_at : message.updated_at;
      this.put([{ ...message, revision: version, updated_at: since + elapsed, parts }]);
    }
  }

  /** Compute what the entries make of the messages, and return these; changes nothing. @throws Misfit */
  plan(entries: readonly MessageEntry[] = [], source: Source): Message[] {
    const planned: Message[] = [];
    const seen = new Set<number>();
    for (const entry of entries) {
      const { sequence, session_id = this.#sessionId, message_id = "" } = entry;
      must(!seen.has(sequence));
      seen.add(sequence);
      const revision = (source.since === undefined ? undefined : entry.revision) ?? source.version;
      const before = this.#held.get(sequence);
      if (this.#covers(sequence) && sequence >= source.below && revision > (before?.revision ?? -1)) {
        must(session_id === this.#sessionId && (this.#ids.get(message_id) ?? sequence) === sequence);
        planned.push(merged(before, entry, revision, source.since));
      }
    }
    return planned;
  }

  #covers(sequence: number): boolean {
    return this.first !== undefined && this.first <= sequence;
  }
}

function merged(
  before: Message | undefined,
  entry: MessageEntry,
  revision: number,
  since: number | undefined,
): Message {
  const { parts: whole = [], appends = [], ended = [], part_count, ...own } = entry;
  const grows = appends.length + ended.length > 0;
  if (before) {
    must((own.message_id ?? before.message_id) === before.message_id);
    must(!grows || (since !== undefined && before.revision <= since), "gap");
  } else {
    must(
      !grows &&
        own.message_id &&
        own.session_id &&
        own.role &&
        own.visibility &&
        own.created_at !== undefined,
    );
  }
  const parts = [...(before?.parts ?? [])];
  const isWhole = new Set<number>();
  for (const part of [...whole].sort((a, b) => a.sequence - b.sequence)) {
    const { sequence } = part;
    must(sequence > 0 && sequence <= parts.length + 1);
    parts[sequence - 1] = part;
    isWhole.add(sequence);
  }
  must(part_count <= parts.length);
  parts.length = part_count; // so nothing grows above it
  for (const [at, text] of appends) {
    must(!isWhole.has(at));
    grow(parts, at, text);
  }
  for (const at of ended) {
    const part = growing(parts, at);
    must(!isWhole.has(at) && part.type !== "tool");
    parts[at - 1] = { ...part, state: "done" };
  }
  return { ...before, ...own, revision, parts } as Message;
}

/** Put the part with more text in its place. @throws Misfit */
function grow(parts: Part[], at: number, text: string): void {
  const part = growing(parts, at);
  parts[at - 1] =
    part.type === "tool"
      ? { ...part, input_text: (part.input_text ?? "") + text }
      : { ...part, text: part.text + text };
}

/** Return the part that text can be appended to. @throws Misfit */
function growing(parts: readonly Part[], at: number): Growing {
  const part = parts[at - 1];
  must(part && canGrow(part));
  return part;
}

/** Whether a delta may follow. */
export const canGrow = (part: Part): part is Growing =>
  (part as { state?: string }).state === (part.type === "tool" ? "input-streaming" : "streaming");
