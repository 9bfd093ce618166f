/** A message that is written anew: it is sent in a copy of the chat that ends before it. */
import type { Message } from "midstream-client";
import { useState } from "react";
import controls from "../app/controls.module.css";
import { writingCommand } from "../app/keyboard.js";
import { draftOf, editPlace, keepDraft } from "../composer/drafts.js";
import { useAutosize } from "../composer/use_autosize.js";
import type { Actions } from "./actions.js";
import styles from "./edit_message.module.css";
import { textOf } from "./resend.js";

export function EditMessage({ message, actions }: { readonly message: Message; readonly actions: Actions }) {
  const place = editPlace(message.message_id);
  const [text, setText] = useState(() => draftOf(place) || textOf(message));
  const field = useAutosize(text);
  const [isSending, setSending] = useState(false);
  const hasFiles = message.parts.some((part) => part.type !== "text");
  const canSend = !isSending && (Boolean(text.trim()) || hasFiles);
  const send = async () => {
    if (canSend) {
      setSending(true);
      await actions.resend(message, text);
      setSending(false);
    }
  };
  return (
    <div className={styles.edit}>
      <textarea
        ref={field}
        className={styles.text}
        value={text}
        dir="auto"
        rows={1}
        aria-label="Edit the message"
        // biome-ignore lint/a11y/noAutofocus: it is there because somebody asked to edit
        autoFocus
        onChange={(event) => {
          setText(event.target.value);
          keepDraft(place, event.target.value);
        }}
        onKeyDown={(event) => {
          const command = writingCommand(event.nativeEvent);
          if (command === "send") {
            event.preventDefault();
            void send();
          } else if (command === "leave") {
            event.stopPropagation();
            actions.edit(undefined);
          }
        }}
      />
      <div className={styles.foot}>
        <p className={styles.note}>Goes on in a copy of this chat. This one stays as it is.</p>
        <button type="button" className={controls.plain} onClick={() => actions.edit(undefined)}>
          Cancel
        </button>
        <button type="button" className={controls.solid} disabled={!canSend} onClick={send}>
          {isSending ? "Copying…" : "Send in a copy"}
        </button>
      </div>
    </div>
  );
}
