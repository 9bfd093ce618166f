/** Why is it silent: what the running turn does, below the last message. Quiet at first, plainer when it takes long. */
import type { SessionState, Turn } from "midstream-client";
import type { SessionSnapshot } from "midstream-client/react";
import { useTurnElapsed } from "midstream-client/react";
import { elapsedText, statusOf } from "./phase.js";
import styles from "./turn_status.module.css";

interface TurnStatusProps {
  readonly snapshot: SessionSnapshot;
  /** Show what waits for an answer. */
  readonly onShowQuestion: () => void;
}

export function TurnStatus({ snapshot, onShowQuestion }: TurnStatusProps) {
  const { session, turn, messages, state } = snapshot;
  const elapsed = useTurnElapsed(session);
  const words = turn && elapsed && describe(state, turn, () => statusOf(turn, messages, elapsed));
  return (
    // the place is kept while nothing is said, so that nothing moves when something is
    <div className={styles.place}>
      {words && (
        <div className={styles.status} data-phase={words.isHeld ? "held" : turn.phase}>
          <span className={styles.dot} aria-hidden />
          <div>
            <p className={styles.text}>
              {words.text}
              {words.time && <span className={styles.time}> · {words.time}</span>}
              {words.waitsForYou && (
                <button type="button" className={styles.show} onClick={onShowQuestion}>
                  Show
                </button>
              )}
            </p>
            {words.hint && <p className={styles.hint}>{words.hint}</p>}
          </div>
        </div>
      )}
    </div>
  );
}

interface Words {
  readonly text: string;
  readonly time?: string;
  readonly hint?: string | undefined;
  readonly waitsForYou?: boolean;
  readonly isHeld?: boolean;
}

/** Without a connection nobody here knows what the turn does. */
function describe(
  state: SessionState,
  turn: Turn,
  status: () => ReturnType<typeof statusOf>,
): Words | undefined {
  if (state === "offline" || state === "connecting") {
    const hint =
      "The agent does not need this page to go on. What it writes is shown when the page is connected again.";
    return {
      text: turn.phase === "waiting-user" ? "It waited for your answer" : "The agent was answering",
      hint,
      isHeld: true,
    };
  }
  const said = status();
  return said && { ...said, time: elapsedText(said.ms) };
}
