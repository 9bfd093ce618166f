/** How a turn ended that did not come to its end: why, and a way to try again. */
import { CircleStop, RotateCcw, TriangleAlert } from "lucide-react";
import type { Message, Turn } from "midstream-client";
import type { Actions } from "./actions.js";
import { endingText, offersRetry } from "./ending.js";
import styles from "./turn_ending.module.css";

export interface TurnEndingProps {
  readonly turn: Turn;
  /** The last message of the turn. */
  readonly message: Message | undefined;
  readonly actions: Actions;
}

export function TurnEnding({ turn, message, actions }: TurnEndingProps) {
  return (
    <div className={styles.ending} data-state={turn.state}>
      {turn.state === "failed" ? <TriangleAlert aria-hidden /> : <CircleStop aria-hidden />}
      <span className={styles.text}>{endingText(turn, message)}</span>
      {offersRetry(turn, message) && (
        <button type="button" className={styles.retry} onClick={() => actions.retry(turn.turn_id)}>
          <RotateCcw aria-hidden />
          Try again
        </button>
      )}
    </div>
  );
}
