/** Marks where a summary ends: the agent is given that instead of what stands above. It can be read. */
import { ChevronRight } from "lucide-react";
import type { Session } from "midstream-client";
import { useState } from "react";
import { attempt } from "../app/errors.js";
import styles from "./summary_note.module.css";

export function SummaryNote({ session, through }: { readonly session: Session; readonly through: number }) {
  const [text, setText] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const toggle = async () => {
    setOpen(!isOpen);
    if (!isOpen && text === undefined) {
      // the segment that the message right below lies in is the one that the summary closed
      const page = await attempt("read the summary", () => session.segment(through + 1, 1));
      setText(page?.summary?.text);
    }
  };
  return (
    <div className={styles.note}>
      <button type="button" className={styles.head} aria-expanded={isOpen} onClick={toggle}>
        <span>The agent works from a summary of everything above</span>
        <ChevronRight aria-hidden />
      </button>
      {isOpen && (
        <p className={styles.text} dir="auto">
          {text ?? "Reading…"}
        </p>
      )}
    </div>
  );
}
