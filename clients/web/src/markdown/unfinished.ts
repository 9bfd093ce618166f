/**
 * What to show of Markdown that is cut anywhere: what is shown must stay when more comes. A construct that is
 * open at the end is shown as if it were closed; characters that may become markup wait for the next one.
 */

/** Marks of quotes and list items at the begin of a line. */
const CONTAINERS = /^(?:[ \t]|>|[-*+](?=[ \t]|$)|\d{1,9}[.)](?=[ \t]|$))*/;
/** What may still become a rule, a heading, a fence, a table's second row, a number of a list, or a task's box. */
const UNDECIDED = /^(?:\d{1,9}[.)]?|[-*+_=#~`|:][-*+_=#~`|: \t]*|(?:`{3,}|~{3,})[^\n`]*|\[[ xX]?\]?[ \t]*)?$/;
/** What may still become the definition of a link: `[label]: address`, which is not shown at all. */
const DEFINITION = /^ {0,3}\[[^\]\n]{0,60}(?:\](?::[^\n]*)?)?$/;
const TABLE_HEAD = /(?:^|\n)([ \t>]*)(\|[^\n]*?)[ \t]*(\n?)$/;

/** The source without a last line of which nobody can tell yet what it will be. */
export function decided(source: string): string {
  const begin = source.lastIndexOf("\n") + 1;
  const line = source.slice(begin);
  if (UNDECIDED.test(line.replace(CONTAINERS, ""))) {
    return source.slice(0, begin);
  }
  if (DEFINITION.test(line) && /(?:^|\n[ \t]*\n|\]:[^\n]*\n)$/.test(source.slice(0, begin))) {
    return source.slice(0, begin);
  }
  return source;
}

/** The source with a table's second row, where only the first has come: so it is a table from the begin. */
export function withTableRow(source: string): string {
  const head = TABLE_HEAD.exec(source);
  if (!head) {
    return source;
  }
  const [whole, indent = "", row = "", newline = ""] = head;
  const above = source.slice(0, head.index + 1).trimEnd();
  const previous = source.slice(0, Math.max(0, source.length - whole.length));
  const lineAbove = previous.slice(previous.lastIndexOf("\n") + 1).replace(/^[ \t>]*/, "");
  if (lineAbove.startsWith("|") && above) {
    return source; // a row of a table that is there
  }
  const closed = row.endsWith("|") && !row.endsWith("\\|") && row.length > 1;
  const columns = row.replace(/\\\|/g, "").split("|").length - (closed ? 2 : 1);
  const body = newline ? source.slice(0, -1) : source;
  return `${body.trimEnd()}${closed ? "" : " |"}\n${indent}|${"---|".repeat(columns)}`;
}
