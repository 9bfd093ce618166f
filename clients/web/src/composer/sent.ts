/**
 * The texts of prompts that were sent from this browser and wait in a queue. The server names waiting input by
 * id only, so what others wrote is not known until it is a message.
 */
import type { UserPart } from "midstream-client";
import { kept, newest, readTexts } from "../app/kept.js";
import { own } from "../own.js";

const sent = kept("sent", readTexts);
const MOST = 64;
const LONGEST = 4000;
/** What was longer than that, and sent since this page was loaded. */
const long = new Map<string, string>();

export function rememberSent(messageId: string, parts: readonly UserPart[]): void {
  sent.set(newest({ ...sent.get(), [messageId]: summaryOf(parts) }, MOST));
  const whole = textOf(parts);
  if (whole.length > LONGEST) {
    long.set(messageId, whole);
  }
}

export const sentText = (messageId: string): string | undefined => own(sent.get(), messageId);

/** All of that text, to be written anew; after a reload the beginning, where it was long. */
export const wholeSentText = (messageId: string): string | undefined =>
  long.get(messageId) ?? sentText(messageId);

export function forgetSent(messageId: string): void {
  long.delete(messageId);
  const { [messageId]: known, ...others } = sent.get();
  if (known !== undefined) {
    sent.set(others);
  }
}

/** What is shown of a prompt, and kept: the beginning of what it says. */
export const summaryOf = (parts: readonly UserPart[]): string => textOf(parts).slice(0, LONGEST);

/** All that a prompt says, to be written anew: its text, or the names of its files. */
export function textOf(parts: readonly UserPart[]): string {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const files = parts.flatMap((part) => (part.type === "file" ? [part.filename ?? part.media_type] : []));
  return texts.join("\n\n") || files.join(", ");
}
