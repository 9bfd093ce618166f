import type { ReasoningPart } from "midstream-client";
import { Markdown } from "../markdown/markdown.js";
import { duration } from "./amounts.js";
import { Fold } from "./fold.js";
import styles from "./reasoning.module.css";
import { useObserved } from "./use_observed.js";

/** A thought of which less has come is seen from its begin. */
const BEGIN = 80;

/** What the model thought, folded. */
export function ReasoningView({
  part,
  messageId,
}: {
  readonly part: ReasoningPart;
  readonly messageId: string;
}) {
  const streaming = part.state === "streaming";
  const id = `${messageId} ${part.part_id}`;
  const took = useObserved(`think ${id}`, streaming, part.text.length < BEGIN);
  if (!streaming && part.text.trim() === "") {
    return null;
  }
  const words = streaming
    ? "Thinking…"
    : took === undefined
      ? "Thought"
      : `Thought for ${duration(Math.max(took, 1000))}`;
  return (
    <Fold
      id={id}
      tone="line"
      summary={<span className={streaming ? styles.thinking : undefined}>{words}</span>}
    >
      {() => (
        <div className={styles.thought}>
          <Markdown text={part.text} streaming={streaming} />
        </div>
      )}
    </Fold>
  );
}
