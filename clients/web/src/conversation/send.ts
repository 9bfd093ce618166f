/** Sending what was written: what the server cannot take comes back, and why. */
import type { Delivery, Session, UserPart } from "midstream-client";
import { attempt } from "../app/errors.js";
import { forgetSent, rememberSent } from "../composer/sent.js";

/**
 * Send a prompt; false where that failed, which the reader is told. `isFollowed` says whether somebody else gives
 * back a prompt that is refused: one that is too long to leave the page is refused before anybody saw it.
 */
export async function send(
  session: Pick<Session, "prompt">,
  parts: readonly UserPart[],
  options: { readonly messageId: string; readonly delivery?: Delivery },
  isFollowed: (messageId: string) => boolean = () => false,
): Promise<boolean> {
  const { messageId } = options;
  rememberSent(messageId, parts);
  const handle = await attempt("send the message", async () => {
    const made = await session.prompt(parts, options);
    if (made.state === "refused" && !isFollowed(messageId)) {
      throw made.error;
    }
    return made;
  });
  if (!handle) {
    forgetSent(messageId);
  }
  return handle !== undefined;
}
