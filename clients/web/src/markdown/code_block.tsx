import { WrapText } from "lucide-react";
import { memo, useState } from "react";
import styles from "./code.module.css";
import { CodeChunk, CodeChunks } from "./code_chunk.js";
import { useColours } from "./colouring.js";
import { CopyButton } from "./copy_button.js";
import { inOrder } from "./in_order.js";

/** A block of code with its language, to be copied as it is. */
export const CodeBlock = memo(function CodeBlock({
  code,
  language,
  growing,
  caret,
}: {
  readonly code: string;
  readonly language: string;
  readonly growing: boolean;
  readonly caret: boolean;
}) {
  const [splitter] = useState(() => new CodeChunks());
  const [wrapped, setWrapped] = useState(false);
  const colours = useColours(code, language.toLowerCase(), growing);
  const name = language || "text";
  return (
    <figure className={styles.block} dir="ltr">
      <figcaption className={styles.head}>
        <span className={styles.language}>{name}</span>
        <button
          type="button"
          className={styles.action}
          aria-pressed={wrapped}
          aria-label="Wrap lines"
          title="Wrap lines"
          onClick={() => setWrapped(!wrapped)}
        >
          <WrapText aria-hidden />
        </button>
        <CopyButton text={() => code} what="code" />
      </figcaption>
      <section
        className={wrapped ? styles.wrapped : styles.scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        tabIndex={0}
        aria-label={`Code, ${name}`}
      >
        <pre>
          <code>
            {inOrder(splitter.of(code), (text, index) => (
              <CodeChunk text={text} colours={colours[index]} />
            ))}
            {caret ? <span className={styles.caret} aria-hidden data-caret /> : null}
          </code>
        </pre>
      </section>
    </figure>
  );
});
