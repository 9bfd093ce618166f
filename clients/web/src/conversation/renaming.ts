/** Chats that were begun here under an id that the server did not take: it gave them another (SPEC 10.5). */
import { moveFresh } from "../app/fresh.js";
import { chatPath, navigate } from "../app/route.js";
import { moveDraft } from "../composer/drafts.js";

const before = new Map<string, string>();

/** What a chat is told by in what is drawn: the same for both ids, so that nothing of it is drawn anew. */
export const keyOfChat = (sessionId: string): string => before.get(sessionId) ?? sessionId;

/** The chat that is shown has another id now: what belongs to it goes with it, and the address. */
export function renamed(from: string, to: string): void {
  before.set(to, keyOfChat(from));
  moveFresh(from, to);
  moveDraft(from, to);
  navigate(chatPath(to), "replace");
}
