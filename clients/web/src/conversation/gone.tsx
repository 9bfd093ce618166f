/** A chat that cannot be shown: never was, was deleted, or was closed. */
import type { OpenSession } from "midstream-client/react";
import { useEffect, useState } from "react";
import { Blank } from "../app/blank.js";
import controls from "../app/controls.module.css";
import { navigate } from "../app/route.js";
import styles from "./conversation.module.css";
import { goneWords } from "./gone_words.js";
import header from "./header.module.css";
import { ListButton } from "./list_button.js";
import { moveUnsent } from "./unsent.js";

const UNSENT = "What you wrote there and was not sent is in the box of a new chat.";

export function Gone({ snapshot }: { readonly snapshot: OpenSession }) {
  const { error, reopen, session, pending } = snapshot;
  const [isMoved, setMoved] = useState(false);
  const wasClosedHere = error === undefined;
  useEffect(() => {
    if (wasClosedHere) {
      reopen();
    }
  }, [wasClosedHere, reopen]);
  useEffect(() => {
    if (error && moveUnsent(session.sessionId, pending, error)) {
      setMoved(true);
    }
  }, [session, pending, error]);
  if (wasClosedHere) {
    return <div className={styles.conversation} />;
  }
  const { title, text, canReopen } = goneWords(error);
  return (
    <div className={styles.conversation}>
      <header className={header.header}>
        <ListButton />
      </header>
      <Blank title={title} text={isMoved ? `${text} ${UNSENT}` : text}>
        <button type="button" className={controls.solid} onClick={() => navigate("/")}>
          Begin a new chat
        </button>
        {canReopen && (
          <button type="button" className={controls.quiet} onClick={reopen}>
            Look again
          </button>
        )}
      </Blank>
    </div>
  );
}
