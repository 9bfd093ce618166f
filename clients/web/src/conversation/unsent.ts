/** What was written to a chat that is gone, and never became a message of it. */
import type { MidstreamError, PromptParams } from "midstream-client";
import { draftOf, keepDraft, NEW_CHAT, withReturned } from "../composer/drafts.js";
import { forgetSent, textOf } from "../composer/sent.js";

const moved = new Set<string>();

/**
 * Bring it to where a new chat is written; whether there was any. The client has forgotten the prompts of a chat
 * that is not there, so this is the only copy.
 */
export function moveUnsent(
  sessionId: string,
  pending: readonly PromptParams[],
  { code, details }: MidstreamError,
): boolean {
  const isDeleted = details.reason === "deleted";
  const texts: string[] = [];
  if (isDeleted || code === "not_found" || code === "forbidden" || details.reason === "forbidden") {
    for (const { message_id, parts } of pending) {
      if (!moved.has(message_id)) {
        moved.add(message_id);
        forgetSent(message_id);
        texts.push(textOf(parts));
      }
    }
  }
  if (isDeleted) {
    texts.push(draftOf(sessionId)); // nobody can open that chat any more
    keepDraft(sessionId, "");
  }
  const text = texts.filter(Boolean).join("\n\n");
  keepDraft(NEW_CHAT, withReturned(draftOf(NEW_CHAT), text));
  return text !== "";
}
