import { Braces, StickyNote } from "lucide-react";
import type { DataPart, Value } from "midstream-client";
import type { ReactNode } from "react";
import { inOrder } from "../markdown/in_order.js";
import styles from "./data.module.css";
import { Fold } from "./fold.js";
import { ValueView } from "./value_view.js";

/** Draws one type of data; undefined where the data has not the form that it knows. */
type Drawing = (data: Value) => ReactNode | undefined;

/** The types that this page knows. */
const KNOWN: { readonly [dataType: string]: Drawing } = { "demo.notes": notes };

/** Data for the page: drawn where its type is known, and else shown as it is, folded. */
export function DataPartView({ part, messageId }: { readonly part: DataPart; readonly messageId: string }) {
  const draw = Object.hasOwn(KNOWN, part.data_type) ? KNOWN[part.data_type] : undefined;
  const drawn = draw?.(part.data);
  return (
    drawn ?? (
      <div className={styles.card}>
        <Fold
          id={`${messageId} ${part.part_id}`}
          tone="row"
          summary={
            <>
              <Braces className={styles.icon} aria-hidden />
              <span className={styles.label}>Data</span>
              <span className={styles.type}>{part.data_type}</span>
            </>
          }
        >
          {() => <ValueView name="Data" value={part.data} />}
        </Fold>
      </div>
    )
  );
}

function notes(data: Value): ReactNode | undefined {
  if (!Array.isArray(data) || !data.every((note) => typeof note === "string")) {
    return undefined;
  }
  return (
    <section className={styles.notes} aria-label="Notes">
      <p className={styles.heading}>
        <StickyNote className={styles.icon} aria-hidden />
        {data.length === 0 ? "No notes" : data.length === 1 ? "1 note" : `${data.length} notes`}
      </p>
      {data.length > 0 ? (
        <ul>
          {inOrder(data, (note) => (
            <li dir="auto">{note}</li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}
