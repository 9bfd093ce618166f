/** The files that go with the next message. */
import { FileText, X } from "lucide-react";
import styles from "./attachment_list.module.css";
import type { Attachment } from "./attachments.js";

interface AttachmentListProps {
  readonly attachments: readonly Attachment[];
  readonly onRemove: (id: string) => void;
}

export function AttachmentList({ attachments, onRemove }: AttachmentListProps) {
  if (!attachments.length) {
    return null;
  }
  return (
    <ul className={styles.list} aria-label="Attached files">
      {attachments.map(({ id, name, mediaType, url }) => (
        <li key={id} className={styles.file}>
          {mediaType.startsWith("image/") ? (
            <img className={styles.image} src={url} alt="" />
          ) : (
            <span className={styles.icon}>
              <FileText aria-hidden />
            </span>
          )}
          <span className={styles.name} title={name}>
            {name}
          </span>
          <button
            type="button"
            className={styles.remove}
            onClick={() => onRemove(id)}
            aria-label={`Remove ${name}`}
          >
            <X aria-hidden />
          </button>
        </li>
      ))}
    </ul>
  );
}
