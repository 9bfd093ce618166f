// @vitest-environment happy-dom
/** Every part, in each of its states, is something that assistant-ui takes and shows. */
import { fromThreadMessageLike, type ThreadMessage } from "@assistant-ui/react";
import { describe, expect, test } from "vitest";
import {
  APPROVAL,
  QUESTION,
  toAnswers,
  toThreadMessage,
  toThreadMessages,
  toUserParts,
} from "../../src/assistant-ui/index.js";
import type { Message, Part, Turn } from "../../src/index.js";
import { ALL_LIVES, LIVES, messageWith } from "./lives.js";

const shown = (message: Message): ThreadMessage =>
  fromThreadMessageLike(toThreadMessage(message), "none", { type: "running" });

/** The first content of the last moment of a life, with some of it. */
const lastOf = (type: Part["type"], life: number) =>
  shown(messageWith(LIVES[type][life]?.at(-1) ?? [])).content[0];

test.each(ALL_LIVES)("$name is taken at each of its moments", ({ name, moments }) => {
  for (const moment of moments) {
    const { id, role, content } = shown(moment);
    expect([id, role]).toEqual(["m2", "assistant"]);
    const isNothing = moment.parts.every(
      (part) => part.type === "step-start" || ("text" in part && !part.text),
    );
    expect(content.length > 0, name).toBe(!isNothing);
    expect(toThreadMessage(moment)).toBe(toThreadMessage(moment));
  }
});

describe("what becomes of", () => {
  test("a tool call", () => {
    expect(lastOf("tool", 0)).toMatchObject({
      type: "tool-call",
      toolCallId: "call",
      toolName: "delete_note",
      args: { note: "milk" },
      result: { done: 100 },
    });
    const half = LIVES.tool[0]?.[1] ?? [];
    expect(shown(messageWith(half)).content[0]).toMatchObject({ argsText: '{"note": ', args: {} });
    expect(shown(messageWith(LIVES.tool[0]?.[5] ?? [])).content[0]).toMatchObject({
      result: { done: 50 },
      isPreliminary: true,
    });
    expect(lastOf("tool", 1)).toMatchObject({ result: "no disk", isError: true });
    expect(lastOf("tool", 4)).toMatchObject({ result: null });
  });

  test("an approval, in the call that it is asked for", () => {
    const asked = messageWith(LIVES.tool[5]?.[1] ?? []);
    expect(toThreadMessage(asked).status).toEqual({ type: "requires-action", reason: "tool-calls" });
    expect(shown(asked).content).toMatchObject([
      { type: "tool-call", approval: { id: "int", prompt: "Delete it?\nIt cannot be brought back." } },
    ]);
    expect(lastOf("tool", 5)).toMatchObject({
      result: "gone",
      approval: { approved: true, reason: "because" },
    });
    expect(lastOf("tool", 6)).toMatchObject({ isError: true, approval: { approved: false } });
    expect(lastOf("tool", 7)).toMatchObject({ approval: { resolution: "expired" } });
    expect(lastOf("tool", 8)).toMatchObject({ approval: { approved: true, isAutomatic: true } });
  });

  test("what is asked without a tool", () => {
    expect(shown(messageWith(LIVES.interaction[0]?.[0] ?? [])).content).toMatchObject([
      {
        toolName: QUESTION,
        approval: { display: "questions", questions: [{ id: "q", prompt: "Which?", allowFreeform: true }] },
      },
    ]);
    expect(lastOf("interaction", 0)).toMatchObject({ approval: { answers: { q: { text: "this" } } } });
    expect(lastOf("interaction", 1)).toMatchObject({
      toolName: APPROVAL,
      isError: true,
      approval: { resolution: "cancelled" },
    });
  });

  test("data, actions, errors and context, all as data by a name", () => {
    expect(lastOf("data", 0)).toEqual({ type: "data", name: "weather", id: "w", data: { celsius: 21 } });
    expect(lastOf("action", 0)).toMatchObject({ name: "action", id: "act", data: { state: "completed" } });
    expect(lastOf("error", 0)).toMatchObject({ name: "error", data: { message: "It failed." } });
    expect(lastOf("context", 0)).toMatchObject({ name: "context", data: { tag: "page" } });
  });

  test("sources and files, and images that are safe to load", () => {
    expect(lastOf("source", 0)).toMatchObject({ sourceType: "url", url: "https://example.org/" });
    expect(lastOf("source", 1)).toMatchObject({ sourceType: "document", mediaType: "application/pdf" });
    expect(lastOf("file", 0)).toMatchObject({ type: "file", data: "data:text/plain,hi" });
    const file = (url: string): Part => ({
      type: "file",
      part_id: "p",
      sequence: 1,
      url,
      media_type: "image/png",
    });
    const types = ["https://example.org/a.png", "data:image/png;base64,aa", "javascript:alert(1)"].map(
      (url) => shown(messageWith([file(url)])).content[0]?.type,
    );
    expect(types).toEqual(["image", "image", "file"]);
  });
});

test("how a turn ended is said at its last message", () => {
  const turn = (state: Turn["state"]): Turn => ({
    turn_id: "t",
    revision: 9,
    state,
    phase: "streaming",
    phase_since: 1,
    started_at: 1,
    ...(state === "failed" && { error: { code: "bad", message: "It broke." } }),
  });
  const done = [
    messageWith([], { state: "done" }),
    messageWith([], { message_id: "m4", sequence: 4, state: "done" }),
  ];
  const statuses = (state: Turn["state"]) =>
    toThreadMessages(done, new Map([["t", turn(state)]])).map(({ status }) => status);
  const complete = { type: "complete", reason: "stop" };
  expect(statuses("completed")).toEqual([complete, complete]);
  expect(statuses("stopped")).toEqual([complete, { type: "incomplete", reason: "cancelled" }]);
  expect(statuses("failed")).toEqual([complete, { type: "incomplete", reason: "error", error: "It broke." }]);
});

test("prompts that wait come after the messages", () => {
  const parts = [{ type: "text", text: "Look" }] as const;
  const prompt = { session_id: "s", message_id: "m9", parts, delivery: "auto" } as const;
  expect(toThreadMessages([], new Map(), [prompt])).toMatchObject([
    { id: "m9", role: "user", content: [{ type: "text", text: "Look" }], metadata: { isOptimistic: true } },
  ]);
});

test("what was typed and attached becomes parts of a prompt", () => {
  const image = { type: "image", image: "data:image/png;base64,aa", filename: "a.png" } as const;
  const file = { type: "file", data: "aGk=", mimeType: "text/plain" } as const;
  const attachment = { id: "1", type: "file", name: "hi.txt", status: { type: "complete" } } as const;
  expect(
    toUserParts({
      content: [{ type: "text", text: "Look" }, image, { type: "data", name: "place", data: 1 }],
      attachments: [{ ...attachment, content: [file] }],
    }),
  ).toEqual([
    { type: "text", text: "Look" },
    { type: "file", url: image.image, media_type: "image/png", filename: "a.png" },
    { type: "data", data_type: "place", data: 1 },
    { type: "file", url: "data:text/plain;base64,aGk=", media_type: "text/plain", filename: "hi.txt" },
  ]);
});

test("answers are what the questions take: a choice, several, or text", () => {
  const options = [{ value: "a" }, { value: "b" }];
  const questions = [
    { question_id: "one", question: "?", options },
    { question_id: "many", question: "?", options, multiple: true },
    { question_id: "free", question: "?" },
  ];
  const given = { one: { optionIds: ["a"] }, many: { optionIds: ["a", "b"] }, free: { text: "hm" } };
  expect(toAnswers(questions, given)).toEqual({ one: "a", many: ["a", "b"], free: "hm" });
});
