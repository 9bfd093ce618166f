/** How a turn ended that did not come to its end: why, and a way to try again. */
import { CircleStop, RotateCcw, TriangleAlert } from "lucide-react";
import type { Message, Turn } from "midstream-client";
import type { Actions } from "./actions.js";
import { endingText, offersRetry } from "./ending.js";
import styles from "./turn_ending.module.css";

interface TurnEndingProps {
  readonly turn: Turn;
  /** The last message of the turn. */
  readonly message: Message | undefined;
  readonly actions: Actions;
}

export function TurnEnding({ turn, message, actions }: TurnEndingProps) {
  const text = endingText(turn, message);
  const canRetry = actions.canWrite && offersRetry(turn, message);
  if (!text && !canRetry) {
    return null;
  }
  return (
    <div className={styles.ending} data-state={turn.state}>
      {text && (turn.state === "failed" ? <TriangleAlert aria-hidden /> : <CircleStop aria-hidden />)}
      {text && <span className={styles.text}>{text}</span>}
      {canRetry && (
        <button type="button" className={styles.retry} onClick={() => actions.retry(turn.turn_id)}>
          <RotateCcw aria-hidden />
          Retry
        </button>
      )}
    </div>
  );
}
