/** Taking back what was sent and no turn has taken. */
import type { Session } from "midstream-client";
import { attempt } from "../app/errors.js";
import { notify } from "../app/notice.js";
import { forgetSent } from "../composer/sent.js";

/** Take a prompt back; whether that was done. One that a turn has taken stays, and the reader is told. */
export async function takeBack(session: Session, messageId: string): Promise<boolean> {
  const result = await attempt("take the message back", () => session.cancelInput(messageId));
  if (!result) {
    return false;
  }
  if (result.state !== "cancelled") {
    notify({ text: "Too late: the agent has it already.", tone: "plain" });
    return false;
  }
  forgetSent(messageId);
  return true;
}
