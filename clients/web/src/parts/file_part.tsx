import { Download, ExternalLink, FileQuestion, FileText, X } from "lucide-react";
import type { FilePart } from "midstream-client";
import { memo, useRef, useState } from "react";
import { size } from "./amounts.js";
import styles from "./file.module.css";
import { fileName, isPicture, reach, storable } from "./file_address.js";

/** Files that stand beside each other. */
export const Files = memo(
  function Files({ parts }: { readonly parts: readonly FilePart[] }) {
    return (
      <div className={styles.files}>
        {parts.map((part) => (
          <FileView key={part.part_id} part={part} />
        ))}
      </div>
    );
  },
  ({ parts: a }, { parts: b }) => a.length === b.length && a.every((part, index) => part === b[index]),
);

function FileView({ part }: { readonly part: FilePart }) {
  const [broken, setBroken] = useState(false);
  return isPicture(part.url, part.media_type) && !broken ? (
    <Picture part={part} onError={() => setBroken(true)} />
  ) : (
    <Plain part={part} />
  );
}

/** A picture, small; at a click as large as there is room. */
function Picture({ part, onError }: { readonly part: FilePart; readonly onError: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  const name = fileName(part.filename, part.media_type);
  const show = () => {
    setOpen(true);
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" className={styles.thumbnail} onClick={show} aria-label={`Show ${name} large`}>
        <img src={part.url} alt={name} loading="lazy" referrerPolicy="no-referrer" onError={onError} />
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog by itself */}
      <dialog
        ref={dialog}
        className={styles.viewer}
        aria-label={name}
        onClose={() => setOpen(false)}
        onClick={(event) => event.target === event.currentTarget && dialog.current?.close()}
      >
        {open ? (
          <>
            <div className={styles.bar}>
              <span className={styles.name}>{name}</span>
              <Save part={part} name={name} />
              <button
                type="button"
                className={styles.action}
                aria-label="Close"
                onClick={() => dialog.current?.close()}
              >
                <X aria-hidden />
              </button>
            </div>
            <img src={part.url} alt={name} referrerPolicy="no-referrer" />
          </>
        ) : null}
      </dialog>
    </>
  );
}

/** A file that is only named: it can be stored or opened elsewhere, never here. */
function Plain({ part }: { readonly part: FilePart }) {
  const name = fileName(part.filename, part.media_type);
  const at = reach(part.url);
  const where =
    at.kind === "remote" ? at.host : at.kind === "inline" ? size(at.bytes) : "cannot be opened here";
  return (
    <div className={styles.plain}>
      {at.kind === "none" ? <FileQuestion aria-hidden /> : <FileText aria-hidden />}
      <span className={styles.text}>
        <span className={styles.name} title={name}>
          {name}
        </span>
        <span className={styles.more}>
          {part.media_type} · {where}
        </span>
      </span>
      <Save part={part} name={name} />
    </div>
  );
}

function Save({ part, name }: { readonly part: FilePart; readonly name: string }) {
  const at = reach(part.url);
  if (at.kind === "remote") {
    return (
      <a
        className={styles.action}
        href={at.href}
        target="_blank"
        rel="noopener noreferrer nofollow"
        aria-label={`Open ${name}`}
        title={`Open ${name}`}
      >
        <ExternalLink aria-hidden />
      </a>
    );
  }
  return at.kind === "none" ? null : (
    <button
      type="button"
      className={styles.action}
      onClick={() => store(part.url, name)}
      aria-label={`Download ${name}`}
      title={`Download ${name}`}
    >
      <Download aria-hidden />
    </button>
  );
}

function store(url: string, name: string): void {
  const file = storable(url);
  if (file) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}
