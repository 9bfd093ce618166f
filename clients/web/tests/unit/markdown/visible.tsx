/** What a reader sees of Markdown at some moment of its growth. */
import type { ReactNode } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { BlockView } from "../../../src/markdown/blocks.js";
import type { Block, MarkdownStream } from "../../../src/markdown/stream.js";

const ENTITIES: { readonly [entity: string]: string } = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
};

/** The text in elements, as it is read: what is only for using a block (its head) left out. */
function textIn(node: ReactNode): string {
  return renderToStaticMarkup(node)
    .replace(/<figcaption.*?<\/figcaption>/gs, "")
    .replace(/<br\/?>/g, "\n")
    .replace(/<[^>]*>/g, "")
    .replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity] ?? entity);
}

const drawn = new WeakMap<Block, string>();

/** One line for each block. */
export function visible(blocks: readonly Block[]): string[] {
  return blocks.map((block) => {
    const known = drawn.get(block) ?? textIn(<BlockView block={block} caret={false} />);
    drawn.set(block, known);
    return known;
  });
}

/** The visible text of a source at each step of its growth, and at last when it has ended. */
export function* growth(stream: MarkdownStream, source: string, step = 1): Generator<string[]> {
  for (let end = step; end < source.length + step; end += step) {
    yield visible(stream.update(source.slice(0, end), true));
  }
  yield visible(stream.update(source, false));
}
