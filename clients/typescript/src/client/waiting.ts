/** Being told of changes, and waiting for something to become true that frames and answers change. */
import type { Environment } from "./environment.js";
import { timedOut } from "./errors.js";

/** What waits, for how long (undefined: as long as it takes), and what is known to be in the way. */
export interface Wait {
  readonly what: string;
  readonly timeoutMs: number | undefined;
  problem(): string | undefined;
}

/** Who wants to know when one thing changes. */
export class Changes {
  readonly #later: Environment["later"];
  readonly #listeners = new Set<() => void>();

  constructor(later: Environment["later"]) {
    this.#later = later;
  }

  /** Call back after each change; the returned function ends that. */
  listen(listener: () => void): () => void {
    const own = () => listener(); // the same listener may be given twice
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  notify(): void {
    for (const listener of [...this.#listeners]) {
      listener();
    }
  }

  /**
   * Return the first value of `look` that is not undefined; it is called now and after each change.
   *
   * @throws MidstreamError `timed_out`; and what `look` throws.
   */
  until<T>(look: () => T | undefined, wait: Wait): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        stop?.();
        ignore();
        settle();
      };
      const again = () => {
        try {
          const value = look();
          if (value !== undefined) {
            end(() => resolve(value));
          }
        } catch (error) {
          end(() => reject(error));
        }
      };
      const { timeoutMs, what } = wait;
      const stop =
        timeoutMs === undefined
          ? undefined
          : this.#later(timeoutMs, () => end(() => reject(timedOut(what, timeoutMs, wait.problem()))));
      const ignore = this.listen(again);
      again();
    });
  }
}
