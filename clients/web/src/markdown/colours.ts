/** Which characters of a code have which colour. Runs in a worker: it is the only slow part of drawing code. */
import type { HLJSApi } from "highlight.js";

/** How many lines are drawn, and coloured, as one. */
export const CHUNK_LINES = 40;
/** Code that is longer, in characters, stays plain. */
export const LONGEST = 51_200;

const ENTITIES: { readonly [entity: string]: string } = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
};

/**
 * One string for each chunk of lines: `7keyword,3,5string` are 7 characters of a keyword, 3 of nothing, and so
 * on. Undefined where the language is not known. Only lengths and names come from here, never the code itself.
 */
export function coloursOf(hljs: HLJSApi, code: string, language: string): string[] | undefined {
  if (!hljs.getLanguage(language) || code.length > LONGEST) {
    return undefined;
  }
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  const chunks = new ChunkWriter();
  const open: string[] = [];
  for (const [piece, name] of value.matchAll(/<span class="([^"]*)">|<\/span>|&[^;]+;|[^<&]+/g)) {
    if (name !== undefined) {
      open.push(/^hljs-([\w-]+)/.exec(name)?.[1] ?? open.at(-1) ?? "");
    } else if (piece === "</span>") {
      open.pop();
    } else {
      chunks.write(ENTITIES[piece] ?? piece, open.at(-1) ?? "");
    }
  }
  return chunks.ended();
}

class ChunkWriter {
  readonly #chunks: string[] = [];
  #runs: string[] = [];
  #lines = 0;
  #length = 0;
  #name = "";

  write(text: string, name: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#add(end + 1 - from, name);
      from = end + 1;
      this.#lines += 1;
      if (this.#lines === CHUNK_LINES) {
        this.#close();
      }
    }
    this.#add(text.length - from, name);
  }

  ended(): string[] {
    if (this.#length > 0 || this.#runs.length > 0) {
      this.#close();
    }
    return this.#chunks;
  }

  #add(length: number, name: string): void {
    if (name !== this.#name) {
      this.#flush();
      this.#name = name;
    }
    this.#length += length;
  }

  #flush(): void {
    if (this.#length > 0) {
      this.#runs.push(`${this.#length}${this.#name}`);
    }
    this.#length = 0;
  }

  #close(): void {
    this.#flush();
    this.#chunks.push(this.#runs.join(","));
    this.#runs = [];
    this.#lines = 0;
  }
}
