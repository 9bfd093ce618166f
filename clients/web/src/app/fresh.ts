/**
 * Chats that were begun here and that the server may not have yet: written offline, say. They are made when
 * they are opened, over a reload too, and then get a title of their first prompt.
 */

import { own } from "../own.js";
import { kept, newest, readTexts } from "./kept.js";

const fresh = kept("fresh", readTexts);
const MOST = 50;
const LONGEST = 60;

/** Remember a chat that was begun with this text. */
export function rememberFresh(sessionId: string, text: string): void {
  fresh.set(newest({ ...fresh.get(), [sessionId]: titleOf(text) }, MOST));
}

/** The title that a fresh chat should get; undefined where it is not fresh. */
export const freshTitle = (sessionId: string): string | undefined => own(fresh.get(), sessionId);

/** A chat that was begun here has another id now. */
export function moveFresh(from: string, to: string): void {
  const title = freshTitle(from);
  if (title !== undefined) {
    forgetFresh(from);
    fresh.set(newest({ ...fresh.get(), [to]: title }, MOST));
  }
}

export function forgetFresh(sessionId: string): void {
  const { [sessionId]: known, ...others } = fresh.get();
  if (known !== undefined) {
    fresh.set(others);
  }
}

/** A title made of a prompt: its first line, cut at a word. */
export function titleOf(text: string): string {
  const line = (text.trim().split("\n", 1)[0] ?? "").replace(/\s+/g, " ").trim();
  const characters = [...line];
  if (characters.length <= LONGEST) {
    return line;
  }
  const cut = characters.slice(0, LONGEST).join("");
  const atWord = cut.replace(/\s+\S*$/, "");
  return `${atWord.length > LONGEST / 2 ? atWord : cut}…`;
}
