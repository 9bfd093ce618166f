/**
 * A session's server, reduced to what a reader can see: the oracle of the merge law's tests. It remembers the
 * whole state at every version, so what a replica must hold is looked up, not computed.
 */
import type { Cursor, Page } from "../../src/protocol/calls.js";
import type { ChangeContent, MessageEntry, SessionFrame, SyncPayload } from "../../src/protocol/frames.js";
import type { Message, Part, SessionInfo, Turn } from "../../src/protocol/model.js";
import { canGrow } from "../../src/protocol/window.js";

interface State {
  readonly epoch: string;
  readonly session: SessionInfo;
  readonly messages: readonly Message[];
  readonly turns: readonly Turn[];
}

const textOf = (part: Part): string =>
  part.type === "tool"
    ? (part.input_text ?? "")
    : part.type === "text" || part.type === "reasoning"
      ? part.text
      : "";

const withText = (part: Part, text: string): Part =>
  ({ ...part, [part.type === "tool" ? "input_text" : "text"]: text }) as Part;

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** What a frame says of a message that was `old` to its reader; `joins` sends grown text as text. */
function entryOf(old: Message | undefined, now: Message, version: number, joins: boolean): MessageEntry {
  const { parts: all, ...own } = now;
  const { message_id: _, session_id: __, role: ___, visibility: ____, created_at: _____, ...rest } = own;
  const parts: Part[] = [];
  const appends: [number, string][] = [];
  const ended: number[] = [];
  for (const [at, part] of all.entries()) {
    const before = old?.parts[at];
    if (before === part) {
      continue;
    }
    const isDone = (part as { state?: string }).state === "done";
    const asBefore = before && {
      ...withText(part, textOf(before)),
      ...(isDone ? { state: "streaming" } : {}),
    };
    const grew =
      before && textOf(part).startsWith(textOf(before)) && same(asBefore, before) && canGrow(before);
    if (joins && grew && (part.type !== "tool" || !isDone)) {
      const text = textOf(part).slice(textOf(before).length);
      if (text) {
        appends.push([at + 1, text]);
      }
      if (isDone) {
        ended.push(at + 1);
      }
    } else {
      parts.push(part);
    }
  }
  const { revision, ...withoutRevision } = old ? rest : own;
  const entry = { ...withoutRevision, ...(revision === version ? {} : { revision }), part_count: all.length };
  return { ...entry, sequence: now.sequence, parts, ...(joins ? { appends, ended } : {}) };
}

export class SessionModel {
  readonly states: State[] = [];
  /** The first version of each epoch. */
  private readonly epochs = new Map<string, number>();

  constructor() {
    const session = { session_id: "s", revision: 0, created_at: 0, updated_at: 0, message_count: 0 };
    this.states.push({ epoch: "e0", session, messages: [], turns: [] });
    this.epochs.set("e0", 0);
  }

  get version(): number {
    return this.states.length - 1;
  }

  get now(): State {
    return this.states[this.version] as State;
  }

  get last(): Message | undefined {
    return this.now.messages.at(-1);
  }

  /** Publish the next version, and return its frame; internal messages are a `skip` to a reader. */
  publish(change: Partial<State>): SessionFrame {
    const before = this.now;
    const after = { ...before, ...change };
    this.states.push(after);
    const { version } = this;
    const messages = after.messages
      .filter((message, at) => message !== before.messages[at] && message.visibility === "visible")
      .map((message) => entryOf(this.of(before, message), message, version, false));
    const content: ChangeContent = {
      messages,
      turns: after.turns.filter((turn) => !before.turns.includes(turn)),
      ...(after.session === before.session ? {} : { session: after.session }),
    };
    const isSeen = messages.length || content.turns?.length || content.session;
    return isSeen
      ? { tag: "change", channel: 1, version, durable: version % 3 === 0, content }
      : { tag: "skip", channel: 1, from_version: version - 1, version };
  }

  /** Begin a new epoch: the live state was lost, and the next version comes as a sync. */
  begin(epoch: string, change: Partial<State>): SessionFrame {
    const since = this.version;
    this.publish({ ...change, epoch });
    this.epochs.set(epoch, this.version);
    return { tag: "sync", channel: 1, payload: this.payload("catchup", since) };
  }

  /** What `subscribe` answers. */
  sync(cursor: Cursor | undefined, limit: number): SyncPayload {
    if (!cursor || !this.epochs.has(cursor.epoch)) {
      return this.reset(limit);
    }
    return this.payload(cursor.epoch === this.now.epoch ? "replay" : "catchup", cursor.version);
  }

  page(before: number | undefined, limit: number): Page {
    const visible = this.visible().filter(({ sequence }) => before === undefined || sequence < before);
    const items = limit ? visible.slice(-limit) : [];
    const start = items[0]?.sequence;
    return {
      items,
      total: this.now.session.message_count,
      has_more: visible.length > items.length,
      include_internal: false,
      turns: this.now.turns,
      epoch: this.now.epoch,
      version: this.version,
      ...(start === undefined ? {} : { start_sequence: start }),
      ...(before === undefined ? {} : { before_sequence: before }),
    };
  }

  /** The messages that a reader sees at a version, from a sequence upward. */
  seen(version: number, first = 0): Message[] {
    return this.visible(this.states[version]).filter(({ sequence }) => sequence >= first);
  }

  private visible(state = this.now): Message[] {
    const first = state.session.first_sequence ?? 1;
    return state.messages.filter((message) => message.visibility === "visible" && message.sequence >= first);
  }

  private reset(limit: number): SyncPayload {
    const { items, has_more } = this.page(undefined, limit);
    const { version } = this;
    const messages = items.map((message) => entryOf(undefined, message, version, false));
    const { session, turns, epoch } = this.now;
    return { mode: "reset", epoch, version, session, turns, messages, has_more };
  }

  private payload(mode: "replay" | "catchup", from: number): SyncPayload {
    const { version } = this;
    const before = this.states[from] as State;
    const { session, epoch } = this.now;
    return {
      mode,
      from,
      epoch,
      version,
      messages: this.visible()
        .filter((message) => message.revision > from)
        .map((message) => entryOf(this.of(before, message), message, version, mode === "replay")),
      turns: this.now.turns.filter((turn) => turn.revision > from),
      ...(session.revision > from ? { session } : {}),
    };
  }

  private of(state: State, { sequence }: Message): Message | undefined {
    return state.messages.find((message) => message.sequence === sequence);
  }
}
