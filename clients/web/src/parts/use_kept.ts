/** What a card remembers while it is not on the page: long conversations draw only what is in view. */
import { useState } from "react";

const KEPT_MOST = 500;
const kept = new Map<string, unknown>();

/** As `useState`, but a component of the same `key` that is drawn later finds the value again. */
export function useKept<T>(key: string, initial: T): readonly [T, (value: T) => void] {
  const [value, setValue] = useState(() => (kept.has(key) ? (kept.get(key) as T) : initial));
  const set = (next: T) => {
    kept.delete(key);
    kept.set(key, next);
    const oldest = kept.size > KEPT_MOST ? kept.keys().next().value : undefined;
    if (oldest !== undefined) {
      kept.delete(oldest);
    }
    setValue(next);
  };
  return [value, set];
}

/** Forget what was kept under a key: it will not be wanted again. */
export const forget = (key: string): void => {
  kept.delete(key);
};
