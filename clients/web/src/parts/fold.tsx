import { ChevronRight } from "lucide-react";
import { type ReactNode, useId } from "react";
import styles from "./fold.module.css";
import { useKept } from "./use_kept.js";

/** One quiet row that unfolds. What is folded is not drawn at all. */
export function Fold({
  id,
  summary,
  children,
  tone,
}: {
  /** Under which the page remembers whether it is open. */
  readonly id: string;
  readonly summary: ReactNode;
  readonly children: () => ReactNode;
  /** Without a box of its own: a line of text, or a row at the edge of a card. */
  readonly tone: "line" | "row";
}) {
  const [open, setOpen] = useKept(`fold ${id}`, false);
  const content = useId();
  return (
    <div className={styles[tone]}>
      <button
        type="button"
        className={styles.button}
        aria-expanded={open}
        aria-controls={open ? content : undefined}
        onClick={() => setOpen(!open)}
      >
        {summary}
        <ChevronRight className={styles.chevron} aria-hidden />
      </button>
      {open ? (
        <div id={content} className={styles.content}>
          {children()}
        </div>
      ) : null}
    </div>
  );
}
