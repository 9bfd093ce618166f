/** A block of code that may still grow: its end is looked for in what is new only. */

const OPENING = /^( {0,3})(`{3,}|~{3,})([^\n]*)\n/;

/** What one look at the source tells. */
interface FenceState {
  readonly language: string;
  readonly code: string;
  /** Where the source goes on behind it; undefined while it is open. */
  readonly end: number | undefined;
}

export class Fence {
  readonly #indent: string;
  readonly #language: string;
  readonly #closing: RegExp;
  readonly #held: RegExp;
  readonly #begin: number;
  /** Lines before it have been looked at. */
  #line: number;

  private constructor(at: number, opening: RegExpExecArray) {
    const [whole, indent = "", marks = "", info = ""] = opening;
    const mark = marks.charAt(0);
    this.#indent = indent;
    this.#language = info.trim().split(/\s/, 1)[0] ?? "";
    this.#closing = new RegExp(`^ {0,3}${mark}{${marks.length},}[ \\t]*$`);
    this.#held = new RegExp(`^ {0,3}${mark}*[ \\t]*$`);
    this.#begin = at + whole.length;
    this.#line = this.#begin;
  }

  /** The fence that opens at `at`; undefined where there is none. */
  static at(text: string, at: number): Fence | undefined {
    const lineEnd = text.indexOf("\n", at);
    const opening = lineEnd < 0 ? null : OPENING.exec(text.slice(at, lineEnd + 1));
    return opening && !(opening[2]?.startsWith("`") && opening[3]?.includes("`"))
      ? new Fence(at, opening)
      : undefined;
  }

  /** Where lines are looked at next: what is before it was read already. */
  get line(): number {
    return this.#line;
  }

  /** Look at what is new. A last line that may become the closing one is not shown while `growing`. */
  read(text: string, growing: boolean): FenceState {
    for (;;) {
      const lineEnd = text.indexOf("\n", this.#line);
      const line = text.slice(this.#line, lineEnd < 0 ? undefined : lineEnd);
      if (this.#closing.test(line) && (lineEnd >= 0 || !growing)) {
        return this.#state(text, this.#line - 1, lineEnd < 0 ? text.length : lineEnd + 1);
      }
      if (lineEnd < 0) {
        const hidden = growing && this.#held.test(line);
        return this.#state(text, hidden ? this.#line - 1 : text.length, growing ? undefined : text.length);
      }
      this.#line = lineEnd + 1;
    }
  }

  #state(text: string, codeEnd: number, end: number | undefined): FenceState {
    const code = text.slice(this.#begin, Math.max(this.#begin, codeEnd));
    const { length } = this.#indent;
    const flush = length > 0 ? code.replace(new RegExp(`^ {1,${length}}`, "gm"), "") : code;
    return { language: this.#language, code: flush, end };
  }
}
