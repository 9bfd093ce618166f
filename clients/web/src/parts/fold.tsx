import { ChevronRight } from "lucide-react";
import { type ReactNode, useId } from "react";
import styles from "./fold.module.css";
import { useKept } from "./kept.js";

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
  readonly tone?: "card" | "plain";
}) {
  const [open, setOpen] = useKept(`fold ${id}`, false);
  const content = useId();
  return (
    <div className={tone === "card" ? styles.card : styles.plain}>
      <button
        type="button"
        className={styles.row}
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
