import { Layers } from "lucide-react";
import type { ContextPart } from "midstream-client";
import { Fold } from "./fold.js";
import styles from "./part_view.module.css";
import { LongText } from "./value_view.js";

/** What the user's program added for the model. */
export function ContextView({ part, messageId }: { readonly part: ContextPart; readonly messageId: string }) {
  return (
    <Fold
      id={`${messageId} ${part.part_id}`}
      tone="line"
      summary={
        <>
          <Layers aria-hidden />
          <span className={styles.tag}>Context: {part.tag}</span>
        </>
      }
    >
      {() => <LongText text={part.context} language="" growing={false} />}
    </Fold>
  );
}
