/** Editing what was said, and saying it again. The chat as it is stays; a copy takes another way. */
import type { Client, Message, Session, UserPart } from "midstream-client";
import { rememberFresh } from "../app/fresh.js";
import { newId } from "../app/ids.js";

/** Where an edited message goes: into a copy that ends before it, or into a new chat, where it was the first. */
type Plan =
  | { readonly kind: "fork"; readonly messageId: string }
  | { readonly kind: "new" }
  /** The message before it is not loaded. */
  | { readonly kind: "load-earlier" };

/** Plan to send an edited message. Undefined: it is not a user message of the list. */
export function planResend(
  messages: readonly Message[],
  messageId: string,
  hasEarlier: boolean,
): Plan | undefined {
  const at = messages.findIndex((message) => message.message_id === messageId);
  if (at < 0 || messages[at]?.role !== "user") {
    return undefined;
  }
  const before = messages[at - 1];
  if (before) {
    return { kind: "fork", messageId: before.message_id };
  }
  return hasEarlier ? { kind: "load-earlier" } : { kind: "new" };
}

/** The text of a user message, as it can be edited. */
export const textOf = (message: Pick<Message, "parts">): string =>
  message.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** A message's parts as input: without what the server gives. Its texts become the new one, where there is one. */
export function partsAgain(message: Message, text?: string): readonly UserPart[] {
  const input: UserPart[] = message.parts.flatMap((part): UserPart[] => {
    switch (part.type) {
      case "text":
        return text === undefined ? [{ type: part.type, text: part.text }] : [];
      case "context":
        return [{ type: part.type, tag: part.tag, context: part.context }];
      case "file": {
        const { type, url, media_type, filename } = part;
        return [{ type, url, media_type, ...(filename === undefined ? {} : { filename }) }];
      }
      case "data": {
        const { type, data_type, data, data_id } = part;
        return [{ type, data_type, data, ...(data_id === undefined ? {} : { data_id }) }];
      }
      default:
        return [];
    }
  });
  return text?.trim() ? [{ type: "text", text }, ...input] : input;
}

/** The user message that began a turn, as far as it is known. */
export const promptOf = (messages: readonly Message[], turnId: string): Message | undefined =>
  messages.find((message) => message.role === "user" && message.turn_id === turnId);

/** What sending an edited message needs of a chat. */
export interface Chat {
  readonly client: Pick<Client, "open">;
  readonly session: Pick<Session, "messages" | "hasEarlier" | "loadEarlier" | "fork">;
}

/**
 * Send a message of the chat anew, edited, in a copy that ends before it; returns the copy's id.
 *
 * @throws MidstreamError the copy was not made; nothing was sent.
 */
export async function resend({ client, session }: Chat, message: Message, text: string): Promise<string> {
  let plan = planResend(session.messages, message.message_id, session.hasEarlier);
  while (plan?.kind === "load-earlier") {
    await session.loadEarlier();
    plan = planResend(session.messages, message.message_id, session.hasEarlier);
  }
  const copy =
    plan?.kind === "fork"
      ? await session.fork({ messageId: plan.messageId })
      : client.open(newId("chat"), { create: true });
  if (plan?.kind !== "fork") {
    rememberFresh(copy.sessionId, text);
  }
  await copy.prompt(partsAgain(message, text));
  return copy.sessionId;
}
