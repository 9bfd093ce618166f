import { FileText } from "lucide-react";
import type { SourcePart } from "midstream-client";
import { memo, useId } from "react";
import { remoteAddress } from "../markdown/addresses.js";
import styles from "./source.module.css";

/** What an answer rests on, as a numbered list. */
export const Sources = memo(
  function Sources({ parts }: { readonly parts: readonly SourcePart[] }) {
    const heading = useId();
    return (
      <section className={styles.sources} aria-labelledby={heading}>
        <p id={heading} className={styles.heading}>
          {parts.length === 1 ? "Source" : "Sources"}
        </p>
        <ol>
          {parts.map((part, index) => (
            <li key={part.part_id}>
              <span className={styles.number} aria-hidden>
                {index + 1}
              </span>
              <Source part={part} />
            </li>
          ))}
        </ol>
      </section>
    );
  },
  ({ parts: a }, { parts: b }) => a.length === b.length && a.every((part, index) => part === b[index]),
);

function Source({ part }: { readonly part: SourcePart }) {
  const remote = part.url === undefined ? undefined : remoteAddress(part.url);
  if (remote) {
    return (
      <a href={remote.href} target="_blank" rel="noopener noreferrer nofollow">
        <span className={styles.title} dir="auto">
          {part.title ?? remote.href}
        </span>
        <span className={styles.host}>{remote.host.replace(/^www\./, "")}</span>
      </a>
    );
  }
  return (
    <span className={styles.document}>
      {part.source_type === "document" ? <FileText aria-hidden /> : null}
      <span className={styles.title} dir="auto">
        {part.title ?? part.filename ?? part.url ?? "Untitled"}
      </span>
      <span className={styles.host}>{part.filename ?? part.media_type ?? ""}</span>
    </span>
  );
}
