/** Time that passes when it is told to. */
import type { Clock } from "../../../src/lab/wire.js";

export class HandClock implements Clock {
  #now = 0;
  #waiting: { due: number; callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  later(ms: number, callback: () => void): () => void {
    const entry = { due: this.#now + ms, callback };
    this.#waiting.push(entry);
    return () => {
      this.#waiting = this.#waiting.filter((one) => one !== entry);
    };
  }

  /** Let so many ms pass, and what is due happen in its order. */
  pass(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#waiting.filter(({ due }) => due <= end).sort((a, b) => a.due - b.due)[0];
      if (!next) {
        break;
      }
      this.#waiting = this.#waiting.filter((one) => one !== next);
      this.#now = next.due;
      next.callback();
    }
    this.#now = end;
  }
}
