/** Links by reference: who refers to what, and what is defined so far. Definitions may come after those who use them. */
import type { Links, Tokens } from "marked";
import { hasReferences, label, labelsIn } from "./lexing.js";

/** Where a finished piece is, and what it was made of. */
export interface Place {
  readonly source: string;
  readonly block: number;
  readonly piece: number;
}

export class References {
  /** What is defined, as the parser wants it. */
  readonly links: Links = Object.create(null) as Links;
  /** Pieces that refer to labels which nothing defines so far. */
  readonly #waiting = new Map<string, Place[]>();
  /** Pieces with references that were parsed as if they were defined. */
  #trusted: Place[] = [];

  /** Remember a finished piece, if it refers to anything. `trusting`: how it was parsed. */
  note(place: Place, trusting: boolean): void {
    if (trusting && hasReferences(place.source)) {
      this.#trusted.push(place);
    }
    for (const name of labelsIn(place.source)) {
      if (!this.links[name]) {
        const waiting = this.#waiting.get(name) ?? [];
        waiting.push(place);
        this.#waiting.set(name, waiting);
      }
    }
  }

  /** Learn a definition; the first one of a label counts. Returns the pieces that must be parsed again. */
  define({ tag, href, title }: Tokens.Def): readonly Place[] {
    const name = label(tag);
    if (this.links[name]) {
      return [];
    }
    this.links[name] = { href, title };
    const waiting = this.#waiting.get(name) ?? [];
    this.#waiting.delete(name);
    return waiting;
  }

  /** At the end of the text: the pieces that must be parsed again, because nothing more will be defined. */
  settle(): readonly Place[] {
    const trusted = this.#trusted;
    this.#trusted = [];
    return trusted;
  }
}
