/** Markdown to tokens, by `marked`, with what a model's answer needs and without HTML. */
import { Lexer, type Links, type Token, Tokenizer, type Tokens } from "marked";

/** Tags without attributes that mean only how their text looks. All other HTML is shown as it was written. */
const HARMLESS_TAG = /^<(?:br *\/?|\/?(?:sub|sup|kbd|mark))>/i;
const MATH = /^(?:\\\((?:(?!\\\))[^\n]){1,1000}\\\)|\\\[(?:(?!\\\])[\s\S]){1,1000}\\\])/;

const REFERENCE = /^\[([^[\]]+)\]\[([^[\]]+)\]/;

/** What is nested deeper is text: nobody reads it, and it must not exhaust the stack. */
const DEEPEST = 32;

class AnswerTokenizer extends Tokenizer {
  #depth = 0;

  /** `growing`: a definition may still come, so that a reference is shown as its text meanwhile. */
  constructor(readonly growing: boolean) {
    super();
  }

  override reflink(src: string, links: Links): Tokens.Link | Tokens.Image | Tokens.Text | undefined {
    const [raw, text = "", name = ""] = (this.growing && REFERENCE.exec(src)) || [];
    if (raw === undefined || links[label(name)]) {
      return super.reflink(src, links);
    }
    return { type: "link", raw, href: "", text, tokens: this.lexer.inlineTokens(text) };
  }

  override blockquote(src: string): Tokens.Blockquote | undefined {
    return this.#within(() => super.blockquote(src));
  }

  override list(src: string): Tokens.List | undefined {
    return this.#within(() => super.list(src));
  }

  override link(src: string): Tokens.Link | Tokens.Image | undefined {
    return this.#within(() => super.link(src));
  }

  override emStrong(src: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
    return this.#within(() => super.emStrong(src, masked, before));
  }

  /** No blocks of HTML: what looks like one is a paragraph, whose tags are text. */
  override html(): undefined {
    return undefined;
  }

  override tag(src: string): Tokens.Tag | undefined {
    const raw = HARMLESS_TAG.exec(src)?.[0];
    return raw === undefined
      ? undefined
      : { type: "html", raw, text: raw, inLink: false, inRawBlock: false, block: false };
  }

  /** Formulas keep their backslashes; they are left as text. */
  override escape(src: string): Tokens.Escape | undefined {
    const raw = MATH.exec(src)?.[0];
    return raw === undefined ? super.escape(src) : { type: "escape", raw, text: raw };
  }

  /** One `~` is an "about" far more often than the begin of struck text. */
  override del(src: string, masked: string, before?: string): Tokens.Del | undefined {
    return src.startsWith("~~") ? this.#within(() => super.del(src, masked, before)) : undefined;
  }

  #within<T>(parse: () => T | undefined): T | undefined {
    if (this.#depth >= DEEPEST) {
      return undefined;
    }
    this.#depth += 1;
    try {
      return parse();
    } finally {
      this.#depth -= 1;
    }
  }
}

function lexer(links: Links, growing: boolean): Lexer {
  const made = new Lexer({ gfm: true, tokenizer: new AnswerTokenizer(growing) });
  Object.assign(made.tokens.links, links);
  return made;
}

/** Parse blocks. `source` has no carriage returns. `links` are the references known from elsewhere. */
export function blocksOf(source: string, links: Links, growing: boolean): Token[] {
  try {
    return [...lexer(links, growing).lex(source)];
  } catch {
    const text: Tokens.Text = { type: "text", raw: source, text: source, escaped: false };
    return [{ type: "paragraph", raw: source, text: source, tokens: [text] }]; // a fault of the parser costs no word
  }
}

/** Parse the text of one paragraph, heading or cell that grows. */
export const inlineOf = (source: string, links: Links): Token[] => lexer(links, true).inlineTokens(source);

/** As references are compared: letter case and white space do not count. */
export const label = (text: string): string => text.toLowerCase().replace(/\s+/g, " ").trim();

/** Whether a source has references that look like nothing else. */
export const hasReferences = (source: string): boolean => /\]\[[^[\]]+\]/.test(source);

/** The labels that a source may refer to. */
export function labelsIn(source: string): Set<string> {
  const found = new Set<string>();
  if (source.includes("]")) {
    for (const [, text = ""] of source.matchAll(/\[([^[\]\n]{1,200})\](?!\()/g)) {
      found.add(label(text));
    }
  }
  return found;
}
