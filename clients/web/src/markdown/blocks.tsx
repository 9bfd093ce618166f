/** Block tokens as elements. A `caret` goes to the end of the last text in them. */
import { SquareCheck, Square as SquareIcon } from "lucide-react";
import type { Token, Tokens } from "marked";
import { memo, type ReactNode } from "react";
import { CodeBlock } from "./code_block.js";
import { inOrder } from "./in_order.js";
import { inline } from "./inline.js";
import { lastIndex } from "./leaf.js";
import styles from "./markdown.module.css";
import type { Block } from "./stream.js";

/** Where text grows. */
export const Caret = () => <span className={styles.caret} aria-hidden data-caret />;

/** One block; drawn again only when it is another one. */
export const BlockView = memo(function BlockView({
  block,
  caret,
}: {
  readonly block: Block;
  readonly caret: boolean;
}) {
  const [first] = block.pieces;
  const last = block.pieces.length - 1;
  switch (first?.type) {
    case "list":
      return listOf(
        first as Tokens.List,
        inOrder(block.pieces, (piece, index) => (
          <Items list={piece as Tokens.List} caret={caret && index === last} />
        )),
        "auto",
      );
    case "table":
      return tableOf(
        first as Tokens.Table,
        inOrder(block.pieces, (piece, index) => (
          <Rows table={piece as Tokens.Table} caret={caret && index === last} />
        )),
        caret && last === 0,
      );
    default:
      return inOrder(block.pieces, (piece, index) =>
        oneBlock(piece, caret && index === last, block.growing, "auto"),
      );
  }
});

function oneBlock(token: Token, caret: boolean, growing: boolean, dir?: "auto"): ReactNode {
  switch (token.type) {
    case "paragraph":
      return <p dir={dir}>{text(token, caret)}</p>;
    case "text":
      return text(token, caret);
    case "heading":
      return heading(token as Tokens.Heading, caret, dir);
    case "code": {
      const { text: code, lang } = token as Tokens.Code;
      return (
        <CodeBlock
          code={code}
          language={lang?.trim().split(/\s/, 1)[0] ?? ""}
          growing={growing}
          caret={caret}
        />
      );
    }
    case "blockquote":
      return <blockquote dir={dir}>{blocks((token as Tokens.Blockquote).tokens, caret, growing)}</blockquote>;
    case "list":
      return listOf(token as Tokens.List, <Items list={token as Tokens.List} caret={caret} />, dir);
    case "table":
      return tableOf(token as Tokens.Table, <Rows table={token as Tokens.Table} caret={caret} />, caret);
    case "hr":
      return <hr />;
    case "checkbox":
      return <Box checked={(token as Tokens.Checkbox).checked} />;
    case "space":
    case "def":
      return null;
    default:
      return <p dir={dir}>{token.raw}</p>;
  }
}

function blocks(tokens: readonly Token[], caret: boolean, growing: boolean): ReactNode {
  const last = lastIndex(tokens, ({ type }) => type !== "space");
  return inOrder(tokens, (token, index) =>
    oneBlock(token, caret && index === last, growing && index === last),
  );
}

function text(token: Token, caret: boolean): ReactNode {
  const tokens = ("tokens" in token && token.tokens) || [];
  return (
    <>
      {inOrder(tokens, (child) => (child.type === "checkbox" ? <Box checked={child.checked} /> : null))}
      {inline(tokens.filter(({ type }) => type !== "checkbox"))}
      {caret ? <Caret /> : null}
    </>
  );
}

/** Headings of an answer are below those of the page. */
function heading(token: Tokens.Heading, caret: boolean, dir: "auto" | undefined): ReactNode {
  const Heading = `h${Math.min(6, token.depth + 2)}` as "h3" | "h4" | "h5" | "h6";
  return (
    <Heading dir={dir} className={styles[`depth${token.depth}`]}>
      {text(token, caret)}
    </Heading>
  );
}

function listOf(list: Tokens.List, items: ReactNode, dir: "auto" | undefined): ReactNode {
  return list.ordered ? (
    <ol dir={dir} start={list.start === "" || list.start === 1 ? undefined : list.start}>
      {items}
    </ol>
  ) : (
    <ul dir={dir}>{items}</ul>
  );
}

const Items = memo(function Items({ list, caret }: { readonly list: Tokens.List; readonly caret: boolean }) {
  const last = list.items.length - 1;
  return inOrder(list.items, (item, index) => (
    <li className={item.task ? styles.task : undefined}>
      {blocks(item.tokens, caret && index === last, caret && index === last)}
    </li>
  ));
});

const Box = ({ checked }: { readonly checked: boolean }) => {
  const Square = checked ? SquareCheck : SquareIcon;
  return (
    <Square
      className={styles.box}
      role="img"
      aria-label={checked ? "Done:" : "Not done:"}
      data-done={checked}
    />
  );
};

function tableOf(table: Tokens.Table, rows: ReactNode, caret: boolean): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className={styles.scroller} tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>{cells(table.header, "th", caret && table.rows.length === 0)}</tr>
        </thead>
        {rows}
      </table>
    </section>
  );
}

const Rows = memo(function Rows({ table, caret }: { readonly table: Tokens.Table; readonly caret: boolean }) {
  const last = table.rows.length - 1;
  return (
    <tbody>
      {inOrder(table.rows, (row, index) => (
        <tr>{cells(row, "td", caret && index === last)}</tr>
      ))}
    </tbody>
  );
});

function cells(row: readonly Tokens.TableCell[], Cell: "td" | "th", caret: boolean): ReactNode {
  const last = lastIndex(row, (cell) => cell.text !== "");
  return inOrder(row, (cell, index) => (
    <Cell dir="auto" style={cell.align ? { textAlign: cell.align } : undefined}>
      {inline(cell.tokens)}
      {caret && index === last ? <Caret /> : null}
    </Cell>
  ));
}
