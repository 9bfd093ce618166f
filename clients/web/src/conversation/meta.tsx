/** The thin line below a message: when it was written, and what can be done with it. */
import { Check, Copy, Pencil } from "lucide-react";
import type { Message } from "midstream-client";
import { useEffect, useState } from "react";
import { notify } from "../app/notice.js";
import { copy } from "../markdown/clipboard.js";
import type { Actions } from "./actions.js";
import styles from "./meta.module.css";
import { textOf } from "./resend.js";

const SAID_MS = 1600;

/** A time of day, as people of this place write it. */
export const clockTime = (at: number): string =>
  new Date(at).toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });

export function Meta({ message, actions }: { readonly message: Message; readonly actions: Actions }) {
  const text = textOf(message);
  const at = new Date(message.created_at);
  return (
    <div className={styles.meta} data-role={message.role}>
      <time dateTime={at.toISOString()} title={at.toLocaleString()}>
        {clockTime(message.created_at)}
      </time>
      {text && <CopyButton text={text} />}
      {message.role === "user" && actions.canWrite && (
        <button
          type="button"
          className={styles.action}
          onClick={() => actions.edit(message.message_id)}
          aria-label="Edit and send again"
          title="Edit and send again, in a copy of the chat"
        >
          <Pencil aria-hidden />
        </button>
      )}
    </div>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    const timer = isCopied ? setTimeout(() => setCopied(false), SAID_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isCopied]);
  const onClick = async () => {
    if (await copy(text)) {
      setCopied(true);
    } else {
      notify({ text: "The browser did not let the page copy. Select the text and copy it.", tone: "danger" });
    }
  };
  const label = isCopied ? "Copied" : "Copy the message";
  return (
    <button type="button" className={styles.action} onClick={onClick} aria-label={label} title={label}>
      {isCopied ? <Check aria-hidden className={styles.done} /> : <Copy aria-hidden />}
    </button>
  );
}
