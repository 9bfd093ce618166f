/** Prompts that the server refuses, also those that were written before a reload: nothing of them is lost. */
import type { PromptParams, Session } from "midstream-client";
import { useEffect, useRef } from "react";
import { errorText } from "../app/errors.js";
import { notify } from "../app/notice.js";
import { forgetSent, textOf } from "../composer/sent.js";

/** Give the text of each refused prompt back, and say why it was refused. Returns whether that is done for a prompt. */
export function useRefusals(
  session: Session,
  pending: readonly PromptParams[],
  onReturned: (text: string) => void,
): (messageId: string) => boolean {
  const followed = useRef(new Set<string>());
  const giveBack = useRef(onReturned);
  giveBack.current = onReturned;
  useEffect(() => {
    for (const prompt of pending) {
      const id = prompt.message_id;
      const handle = followed.current.has(id) ? undefined : session.handle(id);
      if (handle) {
        followed.current.add(id);
        const stop = handle.subscribe(() => {
          if (handle.state === "refused") {
            stop();
            forgetSent(id);
            giveBack.current(textOf(prompt.parts));
            const why = handle.error ? errorText(handle.error) : "The server refused it.";
            notify({ text: `Not sent. ${why}`, tone: "danger" });
          } else if (handle.state !== "pending") {
            stop();
          }
        });
      }
    }
  }, [session, pending]);
  return (messageId) => followed.current.has(messageId);
}
