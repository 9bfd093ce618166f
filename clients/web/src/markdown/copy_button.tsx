import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { copy } from "./clipboard.js";
import styles from "./code.module.css";

/** A button that copies, and says that it did. */
export function CopyButton({ text, what }: { readonly text: () => string; readonly what: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said) {
      const timer = setTimeout(() => setSaid(""), 2000);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [said]);
  const onClick = async () => setSaid((await copy(text())) ? "Copied" : "Could not copy");
  return (
    <span className={styles.copy}>
      <button
        type="button"
        className={styles.action}
        aria-label={`Copy ${what}`}
        title={`Copy ${what}`}
        onClick={onClick}
      >
        {said === "Copied" ? <Check aria-hidden /> : <Copy aria-hidden />}
        <span aria-hidden>{said || "Copy"}</span>
      </button>
      <span className="visually-hidden" role="status">
        {said}
      </span>
    </span>
  );
}
