/**
 * Small things kept in localStorage, and shared by the tabs of this origin that have the same reader. A browser that
 * keeps nothing still works.
 */
import { identity, placeOf } from "./identity.js";

/** A value that outlives the page. The same object until it changes, as `useSyncExternalStore` wants it. */
export interface Kept<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

const PREFIX = "midstream.";

/** The key of what is kept for a reader; by default the one of this tab. */
export function keyFor(name: string, subject = identity().subject): string {
  const place = placeOf(subject);
  return (place ? `midstream@${place}/` : PREFIX) + name;
}

/**
 * Keep a value under a name; `read` makes it of what is stored (undefined: nothing, or no JSON). It is the reader's
 * own, unless it is `everybodys`.
 */
export function kept<T>(name: string, read: (stored: unknown) => T, everybodys = false): Kept<T> {
  const key = everybodys ? PREFIX + name : keyFor(name);
  const listeners = new Set<() => void>();
  let text: string | null | undefined;
  let value = read(undefined);
  let isStored = true;

  const load = () => {
    const stored = readText(key);
    if (stored !== text) {
      text = stored;
      value = read(parse(stored));
    }
  };
  const onStorage = (event: StorageEvent) => {
    // a null key: all was cleared
    if (event.key === key || event.key === null) {
      load();
      tell();
    }
  };
  const tell = () => {
    for (const listener of listeners) {
      listener();
    }
  };

  return {
    get: () => {
      // where nobody listens, another tab may have written meanwhile
      if (text === undefined || (listeners.size === 0 && isStored)) {
        load();
      }
      return value;
    },
    set: (next) => {
      value = next;
      text = JSON.stringify(next);
      isStored = writeText(key, text);
      tell();
    },
    subscribe: (listener) => {
      if (listeners.size === 0) {
        load();
        addEventListener("storage", onStorage);
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          removeEventListener("storage", onStorage);
        }
      };
    },
  };
}

/** What is stored under a key; null where nothing is, or where the browser keeps nothing. */
export function readText(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Store a text, or remove it where it is empty. A full or forbidden store loses only what it would have kept: false. */
export function writeText(key: string, text: string): boolean {
  try {
    if (text) {
      localStorage.setItem(key, text);
    } else {
      localStorage.removeItem(key);
    }
    return true;
  } catch {
    return false; // private windows, a full quota: the page goes on without
  }
}

function parse(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Remove all that is kept for a reader. What is nobody's in particular stays. */
export function forgetKept(subject: string): void {
  const prefix = keyFor("", subject);
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(prefix)) {
        localStorage.removeItem(key);
      }
    }
  } catch {
    // a browser that keeps nothing
  }
}

/** Read a map of numbers by name, as far as it is one. */
export function readNumbers(stored: unknown): Readonly<Record<string, number>> {
  const entries = typeof stored === "object" && stored ? Object.entries(stored) : [];
  return Object.fromEntries(entries.filter(([, value]) => typeof value === "number"));
}

/** Read a map of texts by name, as far as it is one. */
export function readTexts(stored: unknown): Readonly<Record<string, string>> {
  const entries = typeof stored === "object" && stored ? Object.entries(stored) : [];
  return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
}

/** The last so many entries of a map: what was set first goes first. */
export function newest<T>(map: Readonly<Record<string, T>>, most: number): Readonly<Record<string, T>> {
  const entries = Object.entries(map);
  return entries.length <= most ? map : Object.fromEntries(entries.slice(-most));
}
