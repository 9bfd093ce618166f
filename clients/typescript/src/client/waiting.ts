/** Being told of changes, and waiting for something to become true that frames and answers change. */
import { timedOut } from "./errors.js";
import type { Timers } from "./timers.js";

/** What waits, for how long (undefined: as long as it takes), and what is known to be in the way. */
export interface Wait {
  readonly what: string;
  readonly timeoutMs: number | undefined;
  problem(): string | undefined;
}

/** Who wants to be told something. */
export class Listeners<T> {
  readonly #all = new Set<(told: T) => void>();

  /** Call back each time; the returned function ends that. */
  listen(listener: (told: T) => void): () => void {
    const own = (told: T) => listener(told); // the same listener may be given twice
    this.#all.add(own);
    return () => this.#all.delete(own);
  }

  notify(told: T): void {
    for (const listener of [...this.#all]) {
      try {
        listener(told);
      } catch (error) {
        void Promise.reject(error); // a bug of the program: it is reported, and stops nothing here
      }
    }
  }
}

/** Who wants to know when one thing changes, or waits for it. */
export class Changes extends Listeners<void> {
  readonly #timers: Timers;

  constructor(timers: Timers) {
    super();
    this.#timers = timers;
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
          : this.#timers.later(timeoutMs, () => end(() => reject(timedOut(what, timeoutMs, wait.problem()))));
      const ignore = this.listen(again);
      again();
    });
  }
}
