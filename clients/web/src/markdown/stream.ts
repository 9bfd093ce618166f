/** Markdown that grows: each block is parsed once when it is finished, and only the last one while it grows. */
import type { Token, Tokens } from "marked";
import { Fence } from "./fence.js";
import { lastIndex, withLeaf } from "./leaf.js";
import { blocksOf, inlineOf } from "./lexing.js";
import { type Place, References } from "./references.js";
import { closed } from "./unclosed.js";
import { decided, withTableRow } from "./unfinished.js";

/** What is drawn as one. A long list or table is finished in pieces, each of which is parsed once. */
export interface Block {
  readonly key: number;
  readonly pieces: readonly Token[];
  /** It may change; it is the last then. */
  readonly growing: boolean;
}

/** How much is parsed at once, at most: what is longer is cut at the end of a line. */
const WINDOW = 16_384;
/** A list or table that is longer is finished in pieces. */
const PIECE = 2048;
/** How much is parsed in one update: a longer text that comes at once is `behind` then. */
const BUDGET = 131_072;

/** One text; it may grow, end, or be replaced by another. */
export class MarkdownStream {
  /** How many characters have been given to the parser. */
  parsed = 0;
  /** There is more of the text than has been parsed: update again. */
  behind = false;
  #text = "";
  #growing = true;
  /** The source before it is in finished pieces. */
  #at = 0;
  #fence: Fence | undefined;
  #references = new References();
  /** What a continued table needs in front of its further rows. */
  #tableHead = "";
  #finished: Block[] = [];
  /** Whether the last finished block goes on in the tail. */
  #continued = false;
  #blocks: readonly Block[] = [];

  /** The blocks of the text as it is now. Finished ones stay the same objects while the text only grows. */
  update(given: string, growing: boolean): readonly Block[] {
    const text = given.includes("\r") ? given.replace(/\r\n?/g, "\n") : given;
    if (text === this.#text && growing === this.#growing && !this.behind) {
      return this.#blocks;
    }
    const kept = this.#text.slice(0, Math.max(this.#at, this.#fence?.line ?? 0));
    // comparing slices is a hundred times faster than `startsWith`
    if (text.slice(0, kept.length) !== kept || (!this.#growing && text !== this.#text)) {
      this.#reset();
    }
    this.#text = text;
    this.#growing = growing;
    this.#blocks = this.#read();
    return this.#blocks;
  }

  #reset(): void {
    this.#at = 0;
    this.#fence = undefined;
    this.#references = new References();
    this.#tableHead = "";
    this.#finished = [];
    this.#continued = false;
  }

  #read(): readonly Block[] {
    const begin = this.#at;
    let tail: Token | undefined;
    this.behind = false;
    while (this.#at < this.#text.length) {
      if (this.#at - begin > BUDGET) {
        this.behind = true;
        break;
      }
      const before = this.#at;
      tail = this.#fence ? this.#readFence(this.#fence) : this.#readBlocks();
      if (tail || (this.#at === before && !this.#fence)) {
        break;
      }
    }
    if (!this.#growing && !this.behind) {
      this.#again(this.#references.settle());
    }
    return this.#shown(tail);
  }

  /** The finished blocks, and behind them, or as a last piece of the last one, the tail. */
  #shown(tail: Token | undefined): readonly Block[] {
    if (!tail) {
      return [...this.#finished];
    }
    const last = this.#finished.at(-1);
    if (this.#continued && last) {
      const whole = { key: last.key, pieces: [...last.pieces, tail], growing: true };
      return [...this.#finished.slice(0, -1), whole];
    }
    return [...this.#finished, { key: this.#finished.length, pieces: [tail], growing: true }];
  }

  #readFence(fence: Fence): Token | undefined {
    const { language, code, end } = fence.read(this.#text, this.#growing);
    const token: Tokens.Code = { type: "code", raw: "", lang: language, text: code };
    if (end === undefined) {
      return token;
    }
    this.#fence = undefined;
    this.#freeze(token, "");
    this.#at = end;
    return undefined;
  }

  /** Parse a window, finish what cannot change any more, and return what still can. */
  #readBlocks(): Token | undefined {
    const cut = this.#text.length - this.#at > WINDOW;
    const source = cut ? this.#window() : this.#text.slice(this.#at);
    const shown = this.#growing && !cut ? withTableRow(decided(source)) : source;
    const head = this.#tableHead.length;
    const tokens = this.#parse(this.#tableHead + shown);
    const index = lastIndex(tokens, ({ type }) => type !== "space");
    const last = tokens[index];
    if (!last || (!cut && !this.#growing)) {
      this.#freezeAll(tokens);
      this.#at += cut || !this.#growing ? source.length : 0;
      return undefined;
    }
    const before = tokens.slice(0, index);
    if (before.length > 0) {
      this.#freezeAll(before);
      this.#at += lengthOf(before) - head;
    }
    return before.length === 0
      ? this.#readLast(last, head, cut ? source.length : 0)
      : this.#readLast(last, 0, cut ? -1 : 0);
  }

  /** Up to the end of the last line, or else word, of a window. */
  #window(): string {
    const window = this.#text.slice(this.#at, this.#at + WINDOW);
    const end = window.lastIndexOf("\n") + 1 || window.lastIndexOf(" ") + 1 || WINDOW;
    return window.slice(0, end);
  }

  /** `cut`: 0 where the text ends with this block, its length where it fills a window, else -1. */
  #readLast(last: Token, head: number, cut: number): Token | undefined {
    if (last.type === "code" && last.codeBlockStyle !== "indented") {
      this.#fence = Fence.at(this.#text, this.#at);
      if (this.#fence) {
        return undefined;
      }
    }
    if (lengthOf([last]) - head > PIECE && this.#freezePiece(last, head)) {
      return this.#readBlocks();
    }
    if (cut === 0) {
      return withLeaf(last, (leaf) => this.#closed(leaf));
    }
    if (cut > 0) {
      this.#freezeAll([last]);
      this.#at += cut;
    }
    return undefined;
  }

  #parse(source: string): Token[] {
    this.parsed += source.length;
    return blocksOf(source, this.#references.links, this.#growing);
  }

  #freezeAll(tokens: readonly Token[]): void {
    for (const token of tokens) {
      if (token.type === "def") {
        this.#again(this.#references.define(token as Tokens.Def));
      } else if (token.type !== "space") {
        this.#freeze(token, token.raw);
      }
    }
  }

  /** Finish a token: a block, or the last piece of the block that is continued. */
  #freeze(token: Token, source: string): void {
    const last = this.#finished.at(-1);
    let block = this.#finished.length;
    let piece = 0;
    if (this.#continued && last) {
      block -= 1;
      piece = last.pieces.length;
      this.#finished[block] = { ...last, pieces: [...last.pieces, token] };
    } else {
      this.#finished.push({ key: block, pieces: [token], growing: false });
    }
    this.#continued = false;
    this.#tableHead = "";
    this.#references.note({ source, block, piece }, this.#growing);
  }

  /** Finish all items of a list, or rows of a table, but the last. */
  #freezePiece(token: Token, head: number): boolean {
    if (token.type === "list") {
      const list = token as Tokens.List;
      const items = list.items.slice(0, -1);
      return this.#freezeFirst({ ...list, items }, items.map(({ raw }) => raw).join(""), 0, "");
    }
    if (token.type === "table") {
      const table = token as Tokens.Table;
      const lastRow = table.raw.trimEnd().lastIndexOf("\n") + 1;
      const [first = "", second = ""] = table.raw.split("\n", 2);
      const source = table.raw.slice(0, lastRow);
      return this.#freezeFirst(
        { ...table, rows: table.rows.slice(0, -1) },
        source,
        head,
        `${first}\n${second}\n`,
      );
    }
    return false;
  }

  #freezeFirst(token: Token, source: string, head: number, tableHead: string): boolean {
    const length = source.length - head;
    if (
      source.length <= tableHead.length ||
      this.#text.slice(this.#at, this.#at + length) !== source.slice(head)
    ) {
      return false;
    }
    this.#freeze(token, source);
    this.#at += length;
    this.#continued = true;
    this.#tableHead = tableHead;
    return true;
  }

  /** Parse finished pieces again: there is more known of their references. */
  #again(places: readonly Place[]): void {
    for (const { source, block, piece } of places) {
      const [token] = this.#parse(source);
      const old = this.#finished[block];
      if (token && old && token.type === old.pieces[piece]?.type) {
        const pieces = old.pieces.map((before, index) => (index === piece ? token : before));
        this.#finished[block] = { ...old, pieces };
      }
    }
  }

  /** A paragraph, heading or cell with what is open in it closed. */
  #closed(leaf: Tokens.Generic): Tokens.Generic {
    const boxes = (leaf.tokens ?? []).filter(({ type }) => type === "checkbox");
    const source = boxes.length > 0 ? leaf.text.replace(/^\[[ xX]\] +/, "") : leaf.text;
    const text = closed(source);
    if (text === source) {
      return leaf;
    }
    this.parsed += text.length;
    return { ...leaf, tokens: [...boxes, ...inlineOf(text, this.#references.links)] };
  }
}

const lengthOf = (tokens: readonly Token[]): number => tokens.reduce((sum, { raw }) => sum + raw.length, 0);
