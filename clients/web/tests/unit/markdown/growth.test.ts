/** What was shown of a growing text stays where it is. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { MarkdownStream } from "../../../src/markdown/stream.js";
import { growth, visible } from "./visible.js";

vi.setConfig({ testTimeout: 60_000 });

const FOLDER = new URL("./answers/", import.meta.url);
const ANSWERS = readdirSync(FOLDER).map(
  (name) => [name, readFileSync(new URL(name, FOLDER), "utf8")] as const,
);

/** Characters that are markup where they are open: a text may show them, or not, until it is known which. */
const unmarked = (text: string) => text.replace(/[\\`*_~[\]()<>|#!$&;:\-+=\s]/g, "");

/** What of `text` does not come, in its order, in `whole`. */
function missing(text: string, whole: string): string {
  let at = 0;
  for (const char of whole) {
    at += text.startsWith(char, at) ? char.length : 0;
  }
  return text.slice(at);
}

const shown = (stream: MarkdownStream, text: string) => visible(stream.update(text, false)).join("\n");

test.each(ANSWERS)("the text of %s only ever grows, character by character", (_, source) => {
  let before = "";
  for (const blocks of growth(new MarkdownStream(), source)) {
    const now = blocks.join("\n").trimEnd();
    expect(now.slice(0, before.length)).toBe(before);
    before = now;
  }
});

test.each(ANSWERS)("%s grown in any steps is the same as given whole", (_, source) => {
  const whole = shown(new MarkdownStream(), source);
  for (const step of [7, 64, 1000]) {
    expect([...growth(new MarkdownStream(), source, step)].at(-1)?.join("\n")).toBe(whole);
  }
});

test.each(ANSWERS)(
  "every beginning of %s that ends there loses nothing of what grew before it",
  (_, source) => {
    for (let end = 1; end < source.length; end += 41) {
      const text = source.slice(0, end);
      const growing = unmarked(visible(new MarkdownStream().update(text, true)).join(""));
      expect(missing(growing, unmarked(shown(new MarkdownStream(), text)))).toBe("");
    }
  },
);

test.each([
  ["bold that never ends", "Hello **world\n\nand on"],
  ["a lone star", "2 *3 is six\n\nand on"],
  ["code that never ends", "a `tick alone\n\nand on"],
  ["a link that never ends", "a [link](https://example.com and\n\non"],
  ["a bracket", "see [1] and array[0] and [b]\n\non"],
  ["tildes", "about ~5 to ~~six\n\non"],
  ["a table that is none", "| a | b |\nno\n\non"],
  ["tags", "if a <b and <div>c</div> d < e\n\non"],
  ["an image that never ends", "wow ![pic and\n\non"],
])("of %s no word is lost or moved", (_, source) => {
  let before = "";
  for (const blocks of growth(new MarkdownStream(), source)) {
    const now = unmarked(blocks.join("\n"));
    expect(now.slice(0, before.length)).toBe(before);
    before = now;
  }
});

test("finished blocks stay the same objects while the text grows", () => {
  const stream = new MarkdownStream();
  const [first, second] = stream.update("One.\n\nTwo.\n\nThr", true);
  const later = stream.update("One.\n\nTwo.\n\nThree.\n\nFour", true);
  expect(later.slice(0, 2)).toEqual([first, second]);
  expect(later[0]).toBe(first);
  expect(later[1]).toBe(second);
});

test("a text that is replaced is read anew, longer or shorter", () => {
  const stream = new MarkdownStream();
  stream.update("One.\n\nTwo.\n\nThree", true);
  expect(visible(stream.update("Other.\n\nText", true))).toEqual(["Other.", "Text"]);
  expect(visible(stream.update("Oth", true))).toEqual(["Oth"]);
  expect(visible(stream.update("Oth", false))).toEqual(["Oth"]);
  expect(visible(stream.update("Oth and on", false))).toEqual(["Oth and on"]);
  expect(visible(stream.update("", false))).toEqual([]);
});

test("a reference is resolved by a definition that comes later, in blocks that were finished", () => {
  const stream = new MarkdownStream();
  const before = stream.update("See [the docs][1] and [other].\n\nMore.\n\nE", true);
  expect(visible(before)[0]).toBe("See the docs and [other].");
  const after = stream.update(
    "See [the docs][1] and [other].\n\nMore.\n\nEnd.\n\n[1]: https://a.example\n[other]: https://b.example\n\nx",
    true,
  );
  expect(visible(after)).toEqual(["See the docs and other.", "More.", "End.", "x"]);
  expect(after[1]).toBe(before[1]);
});

test("a reference that nothing defines is shown as it was written, at the end", () => {
  const stream = new MarkdownStream();
  const text = "See [the docs][1].\n\nEnd.";
  expect(visible(stream.update(text, true))[0]).toBe("See the docs.");
  expect(visible(stream.update(text, false))[0]).toBe("See [the docs][1].");
});

test("lines that end with carriage returns are lines", () => {
  expect(visible(new MarkdownStream().update("# A\r\n\r\n- b\r\n- c\r\n", false))).toEqual(["A", "bc"]);
});
