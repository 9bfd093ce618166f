/** What was typed and not sent, by place: kept on each keystroke, so that nothing is lost on reload. */
import { keyFor, readText, writeText } from "../app/kept.js";

const keyOf = (place: string): string => keyFor(`draft.${place}`);

/** A place to write in: the composer of a chat, of a new chat, or the editing of a message. */
export const NEW_CHAT = "new";
export const editPlace = (messageId: string): string => `edit.${messageId}`;

export const draftOf = (place: string): string => readText(keyOf(place)) ?? "";

/** Keep a draft; an empty one is forgotten. */
export const keepDraft = (place: string, text: string): boolean => writeText(keyOf(place), text);

/** A chat has another id now: what was being written in it goes with it. */
export function moveDraft(from: string, to: string): void {
  keepDraft(to, withReturned(draftOf(to), draftOf(from)));
  keepDraft(from, "");
}

/** What stands in the composer when a text comes back to it: what is there already stays, below. */
export const withReturned = (draft: string, returned: string): string =>
  draft.trim() && returned ? `${returned}\n\n${draft}` : returned || draft;
