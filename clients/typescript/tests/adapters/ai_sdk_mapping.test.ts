/** What the AI SDK itself makes of the chunks of a message is the message, as it would be read at that moment. */
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { describe, expect, test } from "vitest";
import { chunksTo } from "../../src/ai-sdk/chunks.js";
import { toUIMessage, toUIMessages, toUserParts } from "../../src/ai-sdk/index.js";
import { mappedParts } from "../../src/ai-sdk/messages.js";
import type { Message } from "../../src/index.js";
import { ALL_LIVES, messageWith } from "./lives.js";

/** What the AI SDK has after these chunks. */
async function read(chunks: readonly UIMessageChunk[]): Promise<UIMessage["parts"]> {
  const stream = new ReadableStream<UIMessageChunk>({
    start: (controller) => {
      for (const chunk of chunks) {
        controller.enqueue(structuredClone(chunk));
      }
      // a step alone is not shown before anything else comes
      controller.enqueue({ type: "message-metadata", messageMetadata: { end: true } });
      controller.close();
    },
  });
  let last: UIMessage | undefined;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
  }
  return last?.parts ?? [];
}

/**
 * Without what is undefined, what the AI SDK guesses of arguments that are half there, and what it leaves
 * behind of an approval that came to nothing.
 */
function plain(parts: UIMessage["parts"]): unknown {
  const shown = parts.map((part) => {
    if ("toolCallId" in part && part.state === "input-streaming") {
      return { ...part, input: undefined };
    }
    const isOver =
      "approval" in part && part.state === "output-error" && part.approval?.approved === undefined;
    return isOver ? { ...part, approval: undefined } : part;
  });
  return JSON.parse(JSON.stringify(shown));
}

const chunksBetween = (moments: readonly Message[]): UIMessageChunk[] => {
  const all: UIMessageChunk[] = [];
  let told: ReturnType<typeof mappedParts> = [];
  for (const moment of moments) {
    const now = mappedParts(moment);
    const chunks = chunksTo(told, now);
    if (!chunks) {
      throw new Error("no chunks can tell this");
    }
    all.push(...chunks);
    told = now;
  }
  return all;
};

describe.each(ALL_LIVES)("$name", ({ moments }) => {
  test.each(moments.map((_, end) => end))("is right at moment %i, wherever one joined", async (end) => {
    const message = moments[end] as Message;
    for (let joined = 0; joined <= end; joined++) {
      const chunks = chunksBetween(moments.slice(joined, end + 1));
      expect(plain(await read(chunks))).toEqual(plain(toUIMessage(message).parts));
    }
  });

  test("says nothing twice", () => {
    for (const moment of moments) {
      expect(chunksTo(mappedParts(moment), mappedParts(moment))).toEqual([]);
    }
  });
});

test("text that grows is sent once", () => {
  const moment = (text: string) =>
    mappedParts(messageWith([{ type: "text", part_id: "p", sequence: 1, text, state: "streaming" }]));
  expect(chunksTo(moment("Hel"), moment("Hello"))).toEqual([{ type: "text-delta", id: "p", delta: "lo" }]);
});

test("what was changed before the last step cannot be told", () => {
  const text = (text: string) => ({ type: "text", part_id: "p", sequence: 1, text, state: "done" }) as const;
  const step = { type: "step-start", part_id: "q", sequence: 2 } as const;
  const told = mappedParts(messageWith([text("one"), step]));
  expect(chunksTo(told, mappedParts(messageWith([text("other"), step])))).toBeUndefined();
});

test("a message is the same object as long as it did not change, and says who and when", () => {
  const message = messageWith([]);
  expect(toUIMessage(message)).toBe(toUIMessage(message));
  expect(toUIMessage(message)).toMatchObject({
    id: "m2",
    role: "assistant",
    metadata: { created_at: 100, turn_id: "t" },
  });
  expect(toUIMessage(messageWith([], { role: "user" })).role).toBe("user");
});

test("prompts that wait come after the messages, and what a prompt says comes back out of it", () => {
  const parts = [
    { type: "text", text: "Look at this" },
    { type: "file", url: "data:text/plain,hi", media_type: "text/plain", filename: "hi.txt" },
    { type: "context", tag: "page", context: "page 3" },
    { type: "data", data_type: "place", data: { x: 1 }, data_id: "d" },
  ] as const;
  const prompt = { session_id: "s", message_id: "m9", parts, delivery: "auto" } as const;
  const [first, last] = toUIMessages([messageWith([])], [prompt]);
  expect([first?.id, last?.id, last?.role]).toEqual(["m2", "m9", "user"]);
  expect(toUserParts(last as UIMessage)).toEqual(parts);
});
