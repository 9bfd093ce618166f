import type { ActionPart } from "midstream-client";
import styles from "./action.module.css";
import { Fold } from "./fold.js";
import { StateIcon } from "./state_icon.js";
import { ValueView } from "./value_view.js";

const STATES = { running: "running", completed: "done", failed: "failed" } as const;

/** Something that was done, in one row; what it knows beside unfolds. */
export function ActionView({ part, messageId }: { readonly part: ActionPart; readonly messageId: string }) {
  const row = (
    <>
      <StateIcon state={part.state} />
      <span className={styles.title} dir="auto">
        {part.title}
        <span className="visually-hidden">, {STATES[part.state]}</span>
      </span>
      {part.description ? (
        <span className={styles.description} dir="auto">
          {part.description}
        </span>
      ) : null}
    </>
  );
  const { data } = part;
  return data && Object.keys(data).length > 0 ? (
    <Fold id={`${messageId} ${part.part_id}`} tone="line" summary={row}>
      {() => <ValueView name="Data" value={data} />}
    </Fold>
  ) : (
    <div className={styles.row}>{row}</div>
  );
}
