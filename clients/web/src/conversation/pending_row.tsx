/** A prompt that the server has not accepted yet, where its message will stand. */
import type { PromptParams } from "midstream-client";
import { summaryOf, textOf } from "../composer/sent.js";
import type { Actions } from "./actions.js";
import row from "./message_row.module.css";
import styles from "./pending_row.module.css";

interface PendingRowProps {
  readonly prompt: PromptParams;
  readonly actions: Actions;
  readonly isLive: boolean;
}

export function PendingRow({ prompt, actions, isLive }: PendingRowProps) {
  const text = summaryOf(prompt.parts);
  return (
    <article className={row.user} aria-label="You, not sent yet" data-pending>
      <div className={`${row.bubble} ${styles.bubble}`} dir="auto">
        {text}
      </div>
      <div className={styles.meta} data-live={isLive || undefined}>
        <span>{isLive ? "Sending…" : "Will be sent when connected"}</span>
        {!isLive && (
          <>
            <button type="button" onClick={() => actions.takeBack(prompt, textOf(prompt.parts), true)}>
              Edit
            </button>
            <button type="button" onClick={() => actions.takeBack(prompt, text, false)}>
              Do not send
            </button>
          </>
        )}
      </div>
    </article>
  );
}
