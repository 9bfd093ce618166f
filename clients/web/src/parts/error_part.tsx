import { CircleAlert, RotateCcw } from "lucide-react";
import type { ErrorPart, Message } from "midstream-client";
import controls from "./buttons.module.css";
import styles from "./error.module.css";
import { useSurroundings } from "./surroundings.js";

/** A failure that stays in the conversation, with another try where that may help. */
export function ErrorView({
  part,
  message,
  isEnd,
}: {
  readonly part: ErrorPart;
  readonly message: Message;
  /** Whether it ends the message: what goes on has recovered. */
  readonly isEnd: boolean;
}) {
  const { onRetry } = useSurroundings();
  return (
    <div className={styles.error}>
      <CircleAlert className={styles.icon} aria-hidden />
      <div className={styles.text}>
        <p dir="auto">
          <span className="visually-hidden">Error: </span>
          {part.message}
        </p>
        <p className={styles.code}>{part.code}</p>
      </div>
      {part.recoverable && isEnd && onRetry ? (
        <button type="button" className={controls.quiet} onClick={() => onRetry(message)}>
          <RotateCcw aria-hidden />
          Retry
        </button>
      ) : null}
    </div>
  );
}
