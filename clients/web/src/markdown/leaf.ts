/** The way from a block to the text at its very end: that is where a growing one grows. */
import type { Token, Tokens } from "marked";

/** The index of the last item for which `test` holds; -1 for none. */
export function lastIndex<T>(list: readonly T[], test: (item: T) => boolean): number {
  let index = list.length - 1;
  while (index >= 0 && !test(list[index] as T)) {
    index -= 1;
  }
  return index;
}

type Holder = Tokens.Blockquote | Tokens.ListItem;

/** The block with what `change` makes of the last paragraph, heading or text in it. Code stays as it is. */
export function withLeaf(token: Token, change: (leaf: Tokens.Generic) => Tokens.Generic): Token {
  switch (token.type) {
    case "list": {
      const list = token as Tokens.List;
      const items = withLast(list.items, (item) => withLeaf(item, change) as Tokens.ListItem);
      return { ...list, items };
    }
    case "list_item":
    case "blockquote": {
      const holder = token as Holder;
      return {
        ...holder,
        tokens: withLast(holder.tokens, (child) => withLeaf(child, change), isShown),
      } as Token;
    }
    case "table": {
      const table = token as Tokens.Table;
      const inRow = (row: Tokens.TableCell[]) =>
        withLast(
          row,
          (cell) => change({ ...cell, type: "cell" } as never) as never,
          ({ text }) => text !== "",
        );
      return table.rows.length > 0
        ? { ...table, rows: withLast(table.rows, inRow) }
        : { ...table, header: inRow(table.header) };
    }
    case "paragraph":
    case "heading":
    case "text":
      return change(token as Tokens.Generic) as Token;
    default:
      return token;
  }
}

const isShown = (token: Token): boolean => token.type !== "space";

function withLast<T>(
  list: readonly T[],
  change: (item: T) => T,
  test: (item: T) => boolean = () => true,
): T[] {
  const index = lastIndex(list, test);
  return list.map((item, at) => (at === index ? change(item) : item));
}
