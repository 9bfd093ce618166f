/** What rows can ask for. One object for a conversation, so that no row renders again because of it. */
import type { Message, PromptParams, Session } from "midstream-client";

export interface Actions {
  readonly session: Session;
  /** Whether the reader may write, so that what writes is offered. */
  readonly canWrite: boolean;
  /** Edit a user message; undefined ends that. The text that was written is kept as a draft. */
  edit(messageId: string | undefined): void;
  /** Send an edited message in a copy of the chat. */
  resend(message: Message, text: string): Promise<void>;
  /** Send the input of a turn again. */
  retry(turnId: string | undefined): void;
  /** Take a prompt back; `again` puts its text into the composer. */
  takeBack(prompt: Pick<PromptParams, "message_id">, text: string | undefined, again: boolean): void;
}
