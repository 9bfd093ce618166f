/** Where messages are written. */
import { ArrowUp, Paperclip, Square } from "lucide-react";
import type { Delivery, UserPart } from "midstream-client";
import { type ClipboardEvent, type DragEvent, useRef, useState } from "react";
import controls from "../app/controls.module.css";
import { writingCommand } from "../app/keyboard.js";
import { composerId } from "../app/shell.js";
import { AttachmentList } from "./attachment_list.js";
import { promptParts } from "./attachments.js";
import styles from "./composer.module.css";
import { DeliveryMenu } from "./delivery.js";
import { withReturned } from "./drafts.js";
import { useAttachments } from "./use_attachments.js";
import { useAutosize } from "./use_autosize.js";

interface ComposerProps {
  readonly text: string;
  readonly onText: (change: string | ((text: string) => string)) => void;
  /** Send; a failure is told there, and false puts all back. */
  readonly onSend: (parts: readonly UserPart[], delivery: Delivery) => Promise<boolean>;
  readonly isRunning?: boolean;
  readonly isOffline?: boolean;
  readonly onStop?: () => void;
  readonly placeholder?: string;
  readonly autoFocus?: boolean;
}

export function Composer(props: ComposerProps) {
  const { text, onText, onSend, isRunning = false, isOffline = false } = props;
  const files = useAttachments(text);
  const [delivery, setDelivery] = useState<Delivery>("auto");
  const field = useAutosize(text);
  const [isOver, setOver] = useState(false);
  const canSend = Boolean(text.trim()) || files.all.length > 0;

  const send = async () => {
    if (!canSend) {
      return;
    }
    const attached = files.take();
    onText("");
    const isTaken = await onSend(promptParts(text, attached), isRunning ? delivery : "auto");
    if (!isTaken) {
      onText((now) => withReturned(now, text));
      files.give(attached);
    }
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void files.add([...event.dataTransfer.files]);
  };
  const onPaste = (event: ClipboardEvent) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length && !event.clipboardData.getData("text/plain")) {
      event.preventDefault();
      void files.add(pasted);
    }
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be dropped on in all browsers
    <div
      role="group"
      aria-label="Write a message"
      className={styles.composer}
      data-over={isOver || undefined}
      onDrop={onDrop}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.currentTarget === event.target && setOver(false)}
    >
      <AttachmentList attachments={files.all} onRemove={files.remove} />
      {files.problem && (
        <p className={styles.problem} role="alert">
          {files.problem}
        </p>
      )}
      <textarea
        ref={field}
        id={composerId}
        className={styles.text}
        value={text}
        rows={1}
        dir="auto"
        placeholder={props.placeholder ?? "Write a message"}
        aria-label="Message"
        enterKeyHint="send"
        // biome-ignore lint/a11y/noAutofocus: to write is what the page is for
        autoFocus={props.autoFocus}
        onPaste={onPaste}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={(event) => {
          const command = writingCommand(event.nativeEvent);
          if (command === "send") {
            event.preventDefault();
            void send();
          } else if (command === "leave") {
            event.currentTarget.blur(); // the text stays
          }
        }}
      />
      <Tools
        {...{ isRunning, isOffline, canSend, delivery }}
        onDelivery={setDelivery}
        onFiles={files.add}
        onSend={send}
        onStop={props.onStop}
      />
    </div>
  );
}

interface ToolsProps {
  readonly isRunning: boolean;
  readonly isOffline: boolean;
  readonly canSend: boolean;
  readonly delivery: Delivery;
  readonly onDelivery: (delivery: Delivery) => void;
  readonly onFiles: (files: readonly File[]) => void;
  readonly onSend: () => void;
  readonly onStop: (() => void) | undefined;
}

/** What stands below the text: while an answer is written, it can be stopped, and what is written meanwhile sent. */
function Tools(props: ToolsProps) {
  const { isRunning, isOffline, canSend, delivery } = props;
  const sends = isOffline ? "Send when connected" : "Send";
  return (
    <div className={styles.tools}>
      <AttachButton onFiles={props.onFiles} />
      <span className={styles.hint}>{isOffline && canSend ? "Will be sent when connected" : ""}</span>
      {isRunning && canSend && <DeliveryMenu delivery={delivery} onDelivery={props.onDelivery} />}
      {isRunning && (
        <button
          type="button"
          className={styles.stop}
          onClick={props.onStop}
          aria-label="Stop the answer"
          title="Stop"
        >
          <Square aria-hidden fill="currentColor" />
        </button>
      )}
      {(!isRunning || canSend) && (
        <button
          type="button"
          className={styles.send}
          disabled={!canSend}
          onClick={props.onSend}
          aria-label={sends}
          title={sends}
        >
          <ArrowUp aria-hidden />
        </button>
      )}
    </div>
  );
}

function AttachButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        className={controls.icon}
        onClick={() => input.current?.click()}
        aria-label="Attach files"
        title="Attach files"
      >
        <Paperclip aria-hidden />
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        data-files
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = ""; // the same file can be chosen again
        }}
      />
    </>
  );
}
