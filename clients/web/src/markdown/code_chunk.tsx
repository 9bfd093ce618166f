import { memo, type ReactNode } from "react";
import styles from "./code.module.css";
import { CHUNK_LINES } from "./colours.js";

/** Some lines of code, and what is known of their colours. What has no colour is plain. */
export const CodeChunk = memo(function CodeChunk({
  text,
  colours,
}: {
  readonly text: string;
  readonly colours: string | undefined;
}) {
  return <span className={styles.chunk}>{colours === undefined ? text : coloured(text, colours)}</span>;
});

function coloured(text: string, colours: string): ReactNode[] {
  const drawn: ReactNode[] = [];
  let from = 0;
  for (const run of colours.split(",")) {
    const length = Number.parseInt(run, 10);
    if (length > 0) {
      const name = run.slice(String(length).length);
      const piece = text.slice(from, from + length);
      drawn.push(
        name ? (
          <span key={from} className={styles[name.replace(/[^a-z]/g, "_")]}>
            {piece}
          </span>
        ) : (
          piece
        ),
      );
      from += length;
    }
  }
  drawn.push(text.slice(from));
  return drawn;
}

/** Splits code into chunks of lines; of code that grows only the last chunk is looked at again. */
export class CodeChunks {
  #code = "";
  #chunks: string[] = [];
  /** Where the last chunk begins. */
  #last = 0;

  of(code: string): readonly string[] {
    if (code === this.#code) {
      return this.#chunks;
    }
    const grows = code.slice(0, this.#last) === this.#code.slice(0, this.#last);
    const kept = grows ? this.#chunks.slice(0, -1) : [];
    let begin = grows ? this.#last : 0;
    for (;;) {
      let end = begin;
      for (let line = 0; line < CHUNK_LINES && end >= 0; line += 1) {
        end = code.indexOf("\n", end) + 1 || -1;
      }
      if (end < 0 || end >= code.length) {
        break;
      }
      kept.push(code.slice(begin, end));
      begin = end;
    }
    this.#code = code;
    this.#last = begin;
    this.#chunks = [...kept, code.slice(begin)];
    return this.#chunks;
  }
}
