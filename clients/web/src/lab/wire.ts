/** What goes over one socket in both directions, in order, and not before the lab lets it through. */

/** What decides when something may pass. */
export interface Passage {
  readonly isFrozen: boolean;
  readonly delayMs: number;
}

/** How time is told and waited for; the environment of a client has both. */
export interface Clock {
  now(): number;
  later(ms: number, callback: () => void): () => void;
}

interface Held {
  readonly due: number;
  deliver(): void;
}

/**
 * A queue that keeps order: each thing passes `delayMs` after it was put in, and none while the wire is
 * frozen. What was held then passes at once when it thaws, as what TCP sends again does.
 */
export class Wire {
  readonly #clock: Clock;
  readonly #passage: () => Passage;
  #held: Held[] = [];
  #wake: (() => void) | undefined;

  constructor(clock: Clock, passage: () => Passage) {
    this.#clock = clock;
    this.#passage = passage;
  }

  put(deliver: () => void): void {
    const last = this.#held.at(-1)?.due ?? 0;
    this.#held.push({ due: Math.max(last, this.#clock.now() + this.#passage().delayMs), deliver });
    this.pump();
  }

  /** Let through what may pass now; called again when the passage changed. */
  pump(): void {
    this.#wake?.();
    this.#wake = undefined;
    while (!this.#passage().isFrozen) {
      const [first] = this.#held;
      if (!first) {
        return;
      }
      const wait = first.due - this.#clock.now();
      if (wait > 0) {
        this.#wake = this.#clock.later(wait, () => this.pump());
        return;
      }
      this.#held.shift();
      first.deliver();
    }
  }

  /** Drop what waits, for good. */
  clear(): void {
    this.#held = [];
    this.#wake?.();
    this.#wake = undefined;
  }
}
