/** The merge law against an oracle: whatever is lost or late, a replica is the session at a version. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { saved } from "../../src/client/keeper.js";
import type { Page } from "../../src/protocol/calls.js";
import { readServerFrame, type SessionFrame } from "../../src/protocol/frames.js";
import { Replica, type SavedReplica } from "../../src/protocol/merge.js";
import type { Message, Part } from "../../src/protocol/model.js";
import { canGrow } from "../../src/protocol/window.js";
import { SessionModel } from "./session_model.js";

const TEXTS = ["a", "bc", "é", "🙂", "\n"];

const put = (parts: readonly Part[], part: Part): Part[] =>
  parts.map((other) => (other.sequence === part.sequence ? part : other));

/** A session that changes, and one reader behind a link that loses, doubles and delays. */
class Conversation {
  readonly server = new SessionModel();
  replica = new Replica("s");
  private link: SessionFrame[] = [];
  private sent: SessionFrame[] = [];
  private page: Page | undefined;

  constructor(history: number) {
    for (let count = 0; count < history; count++) {
      this.say(count, count);
    }
    this.subscribe(2);
  }

  /** Never torn, doubled or partly applied: the replica is the session at the replica's version. */
  look(): void {
    const { replica, server } = this;
    if (replica.session) {
      const first = replica.fromSequence;
      const seen = first === undefined ? [] : server.seen(replica.version, first);
      expect(replica.messages()).toEqual(seen);
      expect(replica.session).toEqual(server.states[replica.version]?.session);
      expect(new Set(replica.turns.values())).toEqual(new Set(server.states[replica.version]?.turns));
      expect(replica.cursor()?.durable ?? 0).toBeLessThanOrEqual(replica.version);
    }
  }

  /** Deliver everything that is left. */
  quiet(): void {
    while (this.link.length) {
      this.deliver();
    }
    this.take({ tag: "mark", channel: 1, version: this.server.version });
    this.look();
    expect(this.replica.version).toBe(this.server.version);
  }

  // what the session does

  say(a: number, b: number): void {
    const isAgent = a % 2 === 1;
    const { session, messages } = this.server.now;
    const sequence = session.message_count + 1;
    const version = this.server.version + 1;
    const text = TEXTS[b % TEXTS.length] as string;
    const state = isAgent ? { state: "streaming" as const } : {};
    const message: Message = {
      message_id: `m${sequence}`,
      session_id: "s",
      sequence,
      revision: version,
      role: isAgent ? "agent" : "user",
      visibility: b % 4 === 3 && !isAgent ? "internal" : "visible",
      created_at: version,
      updated_at: version,
      ...state,
      parts: [{ type: "text", part_id: `p${version}`, sequence: 1, text, ...state }],
    };
    this.publish({
      messages: [...messages, message],
      session: { ...session, message_count: sequence, revision: version },
    });
  }

  grow(a: number, b: number): void {
    const message = this.server.last;
    const open = message?.parts.filter(canGrow) ?? [];
    const part = open[a % (open.length || 1)];
    if (!message || !part) {
      return;
    }
    const text = TEXTS[b % TEXTS.length] as string;
    const grown: Part =
      part.type === "tool"
        ? { ...part, input_text: (part.input_text ?? "") + text }
        : { ...part, text: part.text + text };
    const elapsed = Math.max(a + b, message.updated_at - message.created_at);
    this.change(message, put(message.parts, grown), message.created_at + elapsed);
    // a delta says the same as the change it stands for
    const { version } = this.server;
    const { sequence: message_sequence } = message;
    this.sent.pop();
    this.link.pop();
    const isShort = message.parts.at(-1) === part && b % 4 > 0; // the long form is as good
    const frame = isShort
      ? [1, version, message.created_at + elapsed - message.updated_at, text]
      : ["d", 1, version, elapsed, message_sequence, part.sequence, text];
    this.send(readServerFrame(frame) as SessionFrame);
  }

  open(a: number): void {
    const message = this.server.last;
    if (message?.role === "agent") {
      const base = { part_id: `p${this.server.version}`, sequence: message.parts.length + 1 };
      const part: Part =
        a % 3 === 0
          ? { ...base, type: "tool", tool_call_id: "c", tool_name: "t", state: "input-streaming" }
          : { ...base, type: a % 3 === 1 ? "text" : "reasoning", text: "", state: "streaming" };
      this.change(message, [...message.parts, part]);
    }
  }

  close(a: number): void {
    const message = this.server.last;
    const part = message?.parts[a % (message.parts.length || 1)];
    if (message && part && canGrow(part)) {
      const closed = { ...part, state: part.type === "tool" ? "ready" : "done" } as Part;
      this.change(message, put(message.parts, closed));
    }
  }

  abandon(a: number): void {
    const message = this.server.last;
    if (message?.role === "agent") {
      this.change(message, message.parts.slice(0, 1 + (a % message.parts.length)));
    }
  }

  turn(a: number): void {
    const revision = this.server.version + 1;
    const turn = { turn_id: `t${a % 3}`, revision, state: "running" as const, phase: "starting" as const };
    const others = this.server.now.turns.filter(({ turn_id }) => turn_id !== turn.turn_id);
    this.publish({ turns: [...others, { ...turn, phase_since: 1, started_at: 1 }] });
  }

  clear(): void {
    const { session } = this.server.now;
    const revision = this.server.version + 1;
    this.publish({ session: { ...session, revision, first_sequence: session.message_count + 1 } });
  }

  crash(a: number): void {
    const { session, messages } = this.server.now;
    const revision = this.server.version + 1;
    const last = messages.at(-1);
    const cut = last && {
      ...last,
      revision,
      parts: last.parts.map((part) => ({ ...part, text: "" }) as Part),
    };
    this.link = []; // whoever reads is told by a sync
    this.send(
      this.server.begin(`e${revision}`, {
        messages: cut && a % 2 ? [...messages.slice(0, -1), cut] : messages,
        session: { ...session, revision },
      }),
    );
  }

  // what the link does

  deliver(): void {
    const frame = this.link.shift();
    if (frame) {
      this.take(frame);
    }
  }

  lose(): void {
    this.link.shift();
  }

  repeat(a: number): void {
    const frame = this.sent[a % (this.sent.length || 1)];
    if (frame && frame.tag !== "sync") {
      this.take(frame);
    }
  }

  // what the reader does

  subscribe(limit?: number): void {
    this.link = [];
    const cursor = limit === undefined ? this.replica.cursor() : undefined;
    const outcome = this.replica.applySync(this.server.sync(cursor, limit ?? 3));
    expect(["applied", "reset", "ignored"]).toContain(outcome);
  }

  resume(): void {
    this.subscribe();
  }

  newest(a: number): void {
    this.subscribe(a % 4);
  }

  ask(a: number): void {
    this.page = this.server.page(this.replica.fromSequence, 1 + (a % 3));
  }

  arrive(): void {
    if (this.page) {
      const before = this.replica.messages();
      if (this.replica.mergePage(this.page) !== "applied") {
        expect(this.replica.messages()).toBe(before);
      }
    }
    this.page = undefined;
  }

  reload(): void {
    const kept = saved(this.replica, 100);
    if (kept) {
      this.replica = new Replica("s");
      this.replica.restore(JSON.parse(JSON.stringify(kept)) as SavedReplica);
      this.page = undefined;
      this.subscribe();
    }
  }

  private publish(change: Parameters<SessionModel["publish"]>[0]): void {
    this.send(this.server.publish(change));
  }

  private change(message: Message, parts: readonly Part[], updated_at = message.updated_at): void {
    const revision = this.server.version + 1;
    const changed = { ...message, parts, revision, updated_at };
    this.publish({ messages: [...this.server.now.messages.slice(0, -1), changed] });
  }

  private send(frame: SessionFrame): void {
    this.link.push(frame);
    this.sent.push(frame);
  }

  private take(frame: SessionFrame): void {
    const before = this.replica.messages();
    const outcome = this.replica.apply(frame);
    if (outcome === "gap" || outcome === "restart") {
      expect(this.replica.messages()).toBe(before);
      this.subscribe(outcome === "gap" ? undefined : 3);
    }
  }
}

const steps = fc.oneof(
  ...(
    [
      ["say", 5],
      ["grow", 20],
      ["open", 6],
      ["close", 4],
      ["abandon", 2],
      ["turn", 3],
      ["clear", 1],
      ["crash", 1],
      ["deliver", 16],
      ["lose", 2],
      ["repeat", 2],
      ["resume", 2],
      ["newest", 1],
      ["ask", 4],
      ["arrive", 4],
      ["reload", 1],
    ] as const
  ).map(([name, weight]) => ({
    weight,
    arbitrary: fc.tuple(fc.constant(name), fc.nat({ max: 11 }), fc.nat({ max: 11 })),
  })),
);

test("a replica is the session at its version, whatever the link does", { timeout: 120_000 }, () => {
  fc.assert(
    fc.property(
      fc.array(steps, { minLength: 30, maxLength: 90 }),
      fc.nat({ max: 6 }),
      (schedule, history) => {
        const conversation = new Conversation(history);
        for (const [name, a, b] of schedule) {
          conversation[name](a, b);
          conversation.look();
        }
        conversation.quiet();
      },
    ),
    { numRuns: 300 },
  );
});
