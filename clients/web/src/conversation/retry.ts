/** Trying again what failed or was stopped: the same input once more, as a new message. */
import type { Message, Session } from "midstream-client";
import { attempt } from "../app/errors.js";
import { partsAgain, promptOf } from "./resend.js";

/** Send the input that began a turn again. */
export async function retry(session: Session, turnId: string | undefined): Promise<void> {
  const prompt: Message | undefined = turnId === undefined ? undefined : promptOf(session.messages, turnId);
  await attempt("try again", async () => {
    if (!prompt) {
      throw new Error("The message that it answered is not loaded. Scroll up to it, or write it again.");
    }
    await session.prompt(partsAgain(prompt));
  });
}
