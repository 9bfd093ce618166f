/** Where a title is edited in its place: Enter and leaving keep it, Esc does not. */
import { useRef, useState } from "react";
import styles from "./title_field.module.css";

interface TitleFieldProps {
  readonly title: string;
  /** Called once: with the new title, or undefined where it stays. */
  readonly onDone: (title: string | undefined) => void;
}

/** The server takes 1024 bytes; a title of more characters than this is none. */
const LONGEST = 200;

export function TitleField({ title, onDone }: TitleFieldProps) {
  const [text, setText] = useState(title);
  const isDone = useRef(false);
  const done = (next: string | undefined) => {
    if (!isDone.current) {
      isDone.current = true;
      onDone(next === title ? undefined : next);
    }
  };
  return (
    <input
      className={styles.field}
      value={text}
      maxLength={LONGEST}
      dir="auto"
      aria-label="Title of the chat"
      // biome-ignore lint/a11y/noAutofocus: it is there because somebody asked to type a title
      autoFocus
      onFocus={(event) => event.target.select()}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => done(text.trim())}
      onKeyDown={(event) => {
        if (event.nativeEvent.isComposing) {
          return;
        }
        if (event.key === "Enter") {
          done(text.trim());
        } else if (event.key === "Escape") {
          event.stopPropagation();
          done(undefined);
        }
      }}
    />
  );
}
