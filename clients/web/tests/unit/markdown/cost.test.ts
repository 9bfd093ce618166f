/** A long answer costs as much for each of its characters as a short one. */
import { expect, test, vi } from "vitest";
import { MarkdownStream } from "../../../src/markdown/stream.js";
import { visible } from "./visible.js";

vi.setConfig({ testTimeout: 120_000 });

const SHAPES: readonly (readonly [string, (block: number) => string])[] = [
  [
    "paragraphs",
    (block) => `Paragraph ${block} says **something** about \`this\` and that, at some length.\n\n`,
  ],
  ["one list", (block) => `- item ${block} of a list that is *not* finished\n`],
  ["one numbered list", (block) => `${block + 1}. item ${block} of a list\n\n   with a second paragraph\n\n`],
  ["one table", (block) => (block === 0 ? "| a | b |\n|---|---|\n" : `| row ${block} | **cell** |\n`)],
  ["one code block", (block) => (block === 0 ? "```python\n" : `    print(${block}, "a line of code")\n`)],
  ["one quote", (block) => `> line ${block} of a quote that does not end\n`],
  ["one paragraph", (block) => `word${block} and more of it, in **one** paragraph\n`],
  ["one line", (block) => `word${block} and more of it, in one line, `],
];

function source(shape: (block: number) => string, length: number): string {
  let text = "";
  for (let block = 0; text.length < length; block += 1) {
    text += shape(block);
  }
  return text;
}

function parsedFor(text: string, step: number): number {
  const stream = new MarkdownStream();
  for (let end = step; end < text.length; end += step) {
    stream.update(text.slice(0, end), true);
  }
  while (stream.update(text, false) && stream.behind) {
    // the rest of a long text
  }
  return stream.parsed;
}

test("100 KB in deltas of 4 characters are parsed in proportion to their length", () => {
  const [, shape] = SHAPES[0] ?? ["", String];
  const parsed = parsedFor(source(shape, 100_000), 4);
  expect(parsed).toBeLessThan(100_000 * 80); // a paragraph is parsed once for each of its deltas
  expect(parsed).toBeLessThan(2.2 * parsedFor(source(shape, 50_000), 4));
});

test.each(SHAPES)(
  "400 KB of %s, 2,000 characters a frame, are parsed in proportion to their length",
  (_, shape) => {
    const parsed = parsedFor(source(shape, 400_000), 2000);
    expect(parsed).toBeLessThan(400_000 * 20);
    expect(parsed).toBeLessThan(2.2 * parsedFor(source(shape, 200_000), 2000) + 100_000);
  },
);

test("1 MB of an answer, 1,000 characters a frame, is parsed not much more than once", () => {
  const [, shape] = SHAPES[0] ?? ["", String];
  expect(parsedFor(source(shape, 1_000_000), 1000)).toBeLessThan(1_000_000 * 2);
});

test.each(SHAPES)("of 100 KB of %s nothing is lost where it is cut into pieces", (_, shape) => {
  const text = source(shape, 100_000);
  const stream = new MarkdownStream();
  for (let end = 3000; end < text.length; end += 3000) {
    stream.update(text.slice(0, end), true);
  }
  let blocks = stream.update(text, false);
  while (stream.behind) {
    blocks = stream.update(text, false);
  }
  const numbers = (from: string) => from.match(/\d+/g)?.map(Number);
  const inText = visible(blocks).join("\n");
  const expected = numbers(text.replace(/^(\d+)\. /gm, ""));
  expect(numbers(inText)).toEqual(expected);
});

test("a text of 1 MB that comes at once is read in parts, and all of it in the end", () => {
  const text = source(SHAPES[0]?.[1] ?? String, 1_000_000);
  const stream = new MarkdownStream();
  let updates = 1;
  let blocks = stream.update(text, false);
  while (stream.behind) {
    blocks = stream.update(text, false);
    updates += 1;
  }
  expect(updates).toBeGreaterThan(4);
  expect(stream.parsed).toBeLessThan(text.length * 2);
  expect(visible(blocks.slice(-1))[0]).toContain("Paragraph");
  expect(blocks).toHaveLength(text.split("\n\n").length - 1);
});

test.each([
  "[",
  "![",
  "*a ",
  "**a",
  "_a _",
  "`",
  "`` ` ",
  "<",
  "<a ",
  "&",
  "~~",
  "\\(",
  "> ",
  "- ",
  "1. ",
  "|",
  "[a](",
  "[a][",
  "#",
  "\n",
  "*_",
])("100,000 characters of nothing but %j are read in bounded time", (piece) => {
  const text = piece.repeat(100_000 / piece.length);
  const stream = new MarkdownStream();
  for (let end = 10_000; end <= text.length; end += 10_000) {
    stream.update(text.slice(0, end), true);
  }
  stream.update(text, false);
  expect(stream.parsed).toBeLessThan(text.length * 60);
});
