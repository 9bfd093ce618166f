/** A snapshot of something that changes often, as `useSyncExternalStore` wants it. */
import { type Shown, withNextFrame, withoutFrame } from "./frames.js";

/**
 * Snapshots of a source. While somebody listens there is one snapshot for all, and a newer one comes with a
 * frame. While nobody does, each look is at the source as it is.
 */
export class Paced<V> implements Shown {
  readonly #listen: (listener: () => void) => () => void;
  readonly #build: (before: V | undefined) => V;
  readonly #listeners = new Set<() => void>();
  #snapshot: V | undefined;
  #ignore: (() => void) | undefined;

  /** `build` makes a snapshot; where nothing changed it returns the one it is given. */
  constructor(listen: (listener: () => void) => () => void, build: (before: V | undefined) => V) {
    this.#listen = listen;
    this.#build = build;
  }

  /** The snapshot of what changes no more. */
  static still<V>(snapshot: V): Paced<V> {
    return new Paced(
      () => () => undefined,
      () => snapshot,
    );
  }

  get isWatched(): boolean {
    return this.#listeners.size > 0;
  }

  readonly read = (): V => {
    if (!this.isWatched || this.#snapshot === undefined) {
      this.#snapshot = this.#build(this.#snapshot);
    }
    return this.#snapshot;
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener(); // the same listener may be given twice
    if (!this.isWatched) {
      this.#snapshot = this.#build(this.#snapshot); // what came since the render that looked at it
      this.#ignore = this.#listen(() => withNextFrame(this));
    }
    this.#listeners.add(own);
    return () => {
      if (this.#listeners.delete(own) && !this.isWatched) {
        this.#ignore?.();
        withoutFrame(this);
      }
    };
  };

  refresh(): boolean {
    const before = this.#snapshot;
    this.#snapshot = this.#build(before);
    return this.#snapshot !== before;
  }

  tell(): void {
    for (const listener of [...this.#listeners]) {
      listener();
    }
  }
}

/** The snapshot `next`, or the one before where all its fields are the same. */
export function unlessSame<V extends object>(before: V | undefined, next: V): V {
  const isSame =
    before && Object.entries(next).every(([name, value]) => Object.is(before[name as keyof V], value));
  return isSame ? before : next;
}
