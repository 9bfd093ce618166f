/** Callbacks for later, all of which end with the client and none of which fails unnoticed. */
import type { Environment } from "./environment.js";

export class Timers {
  readonly #environment: Environment;
  readonly #onFailure: (error: unknown) => void;
  readonly #waiting = new Set<() => void>();

  /** `onFailure` is told what a callback throws. */
  constructor(environment: Environment, onFailure: (error: unknown) => void) {
    this.#environment = environment;
    this.#onFailure = onFailure;
  }

  /** Call back after so many ms; the returned function takes that back. */
  later(ms: number, callback: () => void): () => void {
    const cancel = () => {
      stop();
      this.#waiting.delete(cancel);
    };
    const stop = this.#environment.later(Math.max(0, ms), () => {
      this.#waiting.delete(cancel);
      this.run(callback);
    });
    this.#waiting.add(cancel);
    return cancel;
  }

  /** Call back now, and report what is thrown. */
  run(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#onFailure(error);
    }
  }

  /** Let nothing come any more. */
  cancelAll(): void {
    for (const cancel of this.#waiting) {
      cancel();
    }
  }
}
