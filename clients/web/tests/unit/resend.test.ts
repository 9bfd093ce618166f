// @vitest-environment happy-dom
import type { Message } from "midstream-client";
import { describe, expect, it } from "vitest";
import { partsAgain, planResend, promptOf, resend } from "../../src/conversation/resend.js";
import { message, text } from "./messages.js";

const chat = [message(1), message(2), message(3), message(4)];

describe("edit and send again", () => {
  it("the copy ends before the message that is edited", () => {
    expect(planResend(chat, "message 3", false)).toEqual({ kind: "fork", messageId: "message 2" });
  });

  it("the first message of a chat is sent in a new one", () => {
    expect(planResend(chat, "message 1", false)).toEqual({ kind: "new" });
  });

  it("what stands before the window is loaded first", () => {
    expect(planResend(chat, "message 1", true)).toEqual({ kind: "load-earlier" });
  });

  it("an agent's message, and one that is gone, cannot be edited", () => {
    expect(planResend(chat, "message 2", false)).toBeUndefined();
    expect(planResend(chat, "gone", false)).toBeUndefined();
  });

  it("files go along, the text is the new one, and nothing is sent that the server gives", () => {
    const file = {
      type: "file",
      part_id: "p",
      sequence: 2,
      url: "data:,x",
      media_type: "text/plain",
    } as const;
    const parts = partsAgain(message(1, { parts: [text("old"), file] }), "new");
    expect(parts).toEqual([
      { type: "text", text: "new" },
      { type: "file", url: "data:,x", media_type: "text/plain" },
    ]);
  });

  it("a turn is tried again with the input that began it", () => {
    expect(promptOf(chat, "turn 2")?.message_id).toBe("message 3");
    expect(partsAgain(message(3))).toEqual([{ type: "text", text: "text 3" }]);
  });

  it("the original is only read: earlier messages are loaded, and the copy is prompted", async () => {
    const done: string[] = [];
    let messages: readonly Message[] = chat.slice(2);
    const copy = { sessionId: "copy", prompt: async () => done.push("prompt") };
    const session = {
      get messages() {
        return messages;
      },
      get hasEarlier() {
        return messages !== chat;
      },
      loadEarlier: async () => {
        messages = chat;
        return true;
      },
      fork: async ({ messageId }: { messageId?: string }) => {
        done.push(`fork ${messageId}`);
        return copy;
      },
    };
    const client = { open: () => copy };
    const [, , third] = chat;
    const id = await resend({ client, session } as never, third as Message, "new");
    expect([id, ...done]).toEqual(["copy", "fork message 2", "prompt"]);
  });
});
