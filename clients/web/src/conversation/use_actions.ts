/** What the rows of a chat can ask for, and what comes of it. */
import type { Session } from "midstream-client";
import { useClient } from "midstream-client/react";
import { useMemo } from "react";
import { attempt } from "../app/errors.js";
import { chatPath, navigate } from "../app/route.js";
import { focusComposer } from "../app/shell.js";
import { editPlace, keepDraft } from "../composer/drafts.js";
import type { Actions } from "./actions.js";
import { resend } from "./resend.js";
import { retry } from "./retry.js";
import { takeBack } from "./take_back.js";

/** The actions of a chat; the same object as long as none of these is another one. */
export function useActions(
  session: Session,
  onEdit: (messageId: string | undefined) => void,
  onReturned: (text: string) => void,
  canWrite: boolean,
): Actions {
  const client = useClient();
  return useMemo(
    () => ({
      session,
      canWrite,
      edit: (messageId) => {
        onEdit(messageId);
        if (messageId === undefined) {
          focusComposer();
        }
      },
      resend: async (message, edited) => {
        const copy = await attempt("make the copy", () => resend({ client, session }, message, edited));
        if (copy !== undefined) {
          keepDraft(editPlace(message.message_id), "");
          navigate(chatPath(copy));
        }
      },
      retry: (turnId) => void retry(session, turnId),
      takeBack: (prompt, written, again) =>
        void takeBack(session, prompt.message_id).then((isBack) => {
          if (isBack && again && written) {
            onReturned(written);
            focusComposer();
          }
        }),
    }),
    [session, client, onEdit, onReturned, canWrite],
  );
}
