import { memo, useEffect, useReducer, useState } from "react";
import { BlockView, Caret } from "./blocks.js";
import styles from "./markdown.module.css";
import { MarkdownStream } from "./stream.js";

/**
 * Draw Markdown that may still grow. Finished blocks are parsed and drawn once. It parses whenever `text` is
 * another: give it one at most once a frame.
 */
export const Markdown = memo(function Markdown({
  text,
  streaming,
}: {
  readonly text: string;
  readonly streaming: boolean;
}) {
  // a cache, not a state: what it returns depends on the text alone
  const [stream] = useState(() => new MarkdownStream());
  const [, goOn] = useReducer((count: number) => count + 1, 0);
  const blocks = stream.update(text, streaming);
  const { behind } = stream;
  useEffect(() => {
    if (behind) {
      const timer = setTimeout(goOn, 0);
      return () => clearTimeout(timer);
    }
    return undefined;
  });
  const last = blocks.length - 1;
  const ended = last < 0 || (streaming && blocks[last]?.growing === false);
  return (
    <div className={styles.markdown}>
      {blocks.map((block, index) => (
        <BlockView key={block.key} block={block} caret={streaming && index === last && block.growing} />
      ))}
      {streaming && ended ? (
        <p>
          <Caret />
        </p>
      ) : null}
    </div>
  );
});
