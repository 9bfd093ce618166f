/**
 * The texts of prompts that were sent from this browser and wait in a queue. The server names waiting input by
 * id only, so what others wrote is not known until it is a message.
 */
import type { UserPart } from "midstream-client";
import { kept, newest, readTexts } from "../app/kept.js";

const sent = kept("sent", readTexts);
const MOST = 64;
const LONGEST = 4000;

export function rememberSent(messageId: string, parts: readonly UserPart[]): void {
  sent.set(newest({ ...sent.get(), [messageId]: summaryOf(parts) }, MOST));
}

export const sentText = (messageId: string): string | undefined => sent.get()[messageId];

export function forgetSent(messageId: string): void {
  const { [messageId]: known, ...others } = sent.get();
  if (known !== undefined) {
    sent.set(others);
  }
}

/** What is shown of a prompt: its text, or the names of its files. */
export function summaryOf(parts: readonly UserPart[]): string {
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const files = parts.flatMap((part) => (part.type === "file" ? [part.filename ?? part.media_type] : []));
  return (texts.join("\n\n") || files.join(", ")).slice(0, LONGEST);
}
