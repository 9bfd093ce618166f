/** What components share: made in a render, and given up a while after its last user went. */
import type { Paced } from "./paced.js";

/** How long after its last user something is kept: who comes back meanwhile finds it as it is. */
const KEPT_MS = 30_000;

/** What is shared, and how it is shown: as the snapshots that it has, with what belongs to them. */
export interface Kind<S, V> {
  /** Begin, again after it was closed. */
  open(): Paced<S>;
  /** What a component gets for a snapshot. */
  present(snapshot: S, reopen: () => void): V;
  /** What a server renders, and a page at first that takes that over. */
  blank(reopen: () => void): V;
  /** Whether it has ended, so that who comes next should have it opened again. */
  isClosed(): boolean;
  /** Nobody uses it: end it, or return false for "not yet". */
  giveUp(): boolean;
}

/** The shared things of one client, by name. */
export class Shelf<S, V> {
  readonly #all = new Map<string, Shared<S, V>>();

  /** What is shared under the name; made where there is none. */
  take(name: string, make: () => Kind<S, V>): Shared<S, V> {
    let found = this.#all.get(name);
    if (!found) {
      const made: Shared<S, V> = new Shared(make(), () => {
        if (this.#all.get(name) === made) {
          this.#all.delete(name);
        }
      });
      found = made;
      this.#all.set(name, made);
    }
    found.touch();
    return found;
  }
}

/**
 * One shared thing. It is made in a render, which may never be shown, and has no users then; users come and
 * go with effects, twice over under StrictMode. Neither ends anything: only time without users does.
 */
export class Shared<S, V> {
  readonly #kind: Kind<S, V>;
  readonly #onGone: () => void;
  readonly #listeners = new Set<() => void>();
  #paced: Paced<S> | undefined;
  #presented: { readonly snapshot: S; readonly value: V } | undefined;
  #blank: V | undefined;
  #ignore: (() => void) | undefined;
  #cancel: (() => void) | undefined;

  constructor(kind: Kind<S, V>, onGone: () => void) {
    this.#kind = kind;
    this.#onGone = onGone;
    this.#wait();
  }

  /** A component renders with it. One that had ended begins anew for whoever comes first. */
  touch(): void {
    if (!this.#listeners.size) {
      this.#wait();
      if (this.#paced && this.#kind.isClosed()) {
        this.#paced = undefined;
      }
    }
  }

  readonly read = (): V => {
    const snapshot = this.#open().read();
    if (this.#presented?.snapshot !== snapshot) {
      this.#presented = { snapshot, value: this.#kind.present(snapshot, this.reopen) };
    }
    return this.#presented.value;
  };

  readonly readOnServer = (): V => {
    this.#blank ??= this.#kind.blank(this.reopen);
    return this.#blank;
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#listeners.add(own);
    this.#ignore ??= this.#open().subscribe(this.#tell);
    return () => {
      if (this.#listeners.delete(own) && !this.#listeners.size) {
        this.#ignore?.();
        this.#ignore = undefined;
        this.#wait();
      }
    };
  };

  /** Begin anew where it has ended; all who show it see that. */
  readonly reopen = (): void => {
    if (this.#kind.isClosed()) {
      this.#paced = undefined;
      if (this.#ignore) {
        this.#ignore();
        this.#ignore = this.#open().subscribe(this.#tell);
      }
      this.#tell();
    }
  };

  readonly #tell = (): void => {
    for (const listener of [...this.#listeners]) {
      listener();
    }
  };

  #open(): Paced<S> {
    this.#paced ??= this.#kind.open();
    return this.#paced;
  }

  #wait(): void {
    this.#cancel?.();
    const timer: unknown = setTimeout(() => {
      if (!this.#paced || this.#kind.giveUp()) {
        this.#paced = undefined; // a render that was held up for so long opens it again
        this.#onGone();
      } else {
        this.#wait();
      }
    }, KEPT_MS);
    (timer as { unref?(): void }).unref?.(); // in Node it must not keep the program alive
    this.#cancel = () => clearTimeout(timer as never);
  }
}
