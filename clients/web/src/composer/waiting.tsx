/** Input that waits its turn, above the composer: on its way, or in the session's queue. */
import { Clock, CloudOff, CornerDownRight, Pencil, X } from "lucide-react";
import styles from "./waiting.module.css";
import type { Waiting } from "./waits.js";

interface WaitingListProps {
  readonly waiting: readonly Waiting[];
  /** Take one back; `again`: to write it anew. */
  readonly onTakeBack: (one: Waiting, again: boolean) => void;
}

export function WaitingList({ waiting, onTakeBack }: WaitingListProps) {
  if (!waiting.length) {
    return null;
  }
  return (
    <ul className={styles.list} aria-label="Messages that wait">
      {waiting.map((one) => (
        <li key={one.message_id} className={styles.item} data-waiting={one.state}>
          <StateIcon state={one.state} />
          <span className={styles.text} dir="auto" title={one.text}>
            {one.text ?? <em>Written elsewhere; shown when it is its turn</em>}
          </span>
          <span className={styles.state}>{STATES[one.state]}</span>
          {one.text !== undefined && (
            <button
              type="button"
              className={styles.action}
              onClick={() => onTakeBack(one, true)}
              aria-label={`Edit: ${one.text}`}
              title="Take it back, and edit it"
            >
              <Pencil aria-hidden />
            </button>
          )}
          <button
            type="button"
            className={styles.action}
            onClick={() => onTakeBack(one, false)}
            aria-label={`Cancel: ${one.text ?? "a message"}`}
            title="Cancel"
          >
            <X aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}

const STATES: Readonly<Record<Waiting["state"], string>> = {
  offline: "sent when connected",
  sending: "sending",
  queued: "waits",
};

function StateIcon({ state }: { readonly state: Waiting["state"] }) {
  if (state === "offline") {
    return <CloudOff aria-hidden />;
  }
  return state === "sending" ? <CornerDownRight aria-hidden /> : <Clock aria-hidden />;
}
