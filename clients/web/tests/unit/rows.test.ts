import type { Message, Turn } from "midstream-client";
import { describe, expect, it } from "vitest";
import { type Content, grewAtStart, rowsOf } from "../../src/conversation/rows.js";
import { message, NOON, turn } from "./messages.js";

const DAY = 86_400_000;

const rows = (messages: readonly Message[], more: Partial<Content> = {}) =>
  rowsOf({
    messages,
    turns: new Map<string, Turn>(),
    pending: [],
    summarizedThrough: 0,
    hasEarlier: false,
    today: NOON,
    ...more,
  });

describe("rows of a conversation", () => {
  it("a row stays the same object while another message grows", () => {
    const [first, second] = [message(1), message(2)];
    const before = rows([first, second]);
    const after = rows([first, { ...second, revision: 9 }]);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
  });

  it("a day is named where it begins, and today's chat names none", () => {
    const days = rows([message(1, { created_at: NOON - DAY }), message(2), message(3)]).map((row) => row.day);
    expect(days).toEqual(["Yesterday", "Today", undefined]);
    expect(rows([message(1)])[0]?.day).toBeUndefined();
  });

  it("the first message of a window that goes on above names no day", () => {
    expect(rows([message(1, { created_at: NOON - DAY })], { hasEarlier: true })[0]?.day).toBeUndefined();
  });

  it("a turn that failed or was stopped ends below its last message only", () => {
    const turns = new Map([["turn 1", turn("turn 1", { state: "stopped" })]]);
    const endings = rows([message(1), message(2), message(3)], { turns }).map((row) => row.ending?.state);
    expect(endings).toEqual([undefined, "stopped", undefined]);
  });

  it("a turn that completed or runs has no ending", () => {
    for (const state of ["completed", "running"] as const) {
      const turns = new Map([["turn 1", turn("turn 1", { state })]]);
      expect(rows([message(1), message(2)], { turns })[1]?.ending).toBeUndefined();
    }
  });

  it("copied messages are marked once, below the last of them", () => {
    const origin = { session_id: "another", message_id: "there" };
    const found = rows([message(1, { origin }), message(2, { origin }), message(3)]);
    expect(found.map((row) => row.copiedFrom)).toEqual([undefined, "another", undefined]);
  });

  it("a summary is marked below the last message that it covers and that is shown", () => {
    const found = rows([message(1), message(3), message(5)], { summarizedThrough: 4 });
    expect(found.map((row) => row.summarized)).toEqual([undefined, 4, undefined]);
  });

  it("a prompt that is not accepted yet stands at the end", () => {
    const prompt = { session_id: "session", message_id: "message 3", parts: [], delivery: "auto" as const };
    expect(rows([message(1)], { pending: [prompt] }).map((row) => row.key)).toEqual([
      "message 1",
      "message 3",
    ]);
  });

  it("rows grew at the start where the former first is there, further down", () => {
    const found = rows([message(1), message(2)]);
    expect(grewAtStart("message 2", found)).toBe(true);
    expect(grewAtStart("message 1", found)).toBe(false);
    expect(grewAtStart("gone", found)).toBe(false);
    expect(grewAtStart(undefined, found)).toBe(false);
  });
});
