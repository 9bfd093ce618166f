/** How long something took, as far as this page saw it: parts carry no times of their own. */
import { useEffect, useReducer } from "react";

interface Span {
  /** Undefined where it had begun before it was first seen. */
  readonly from: number | undefined;
  to: number | undefined;
}

const KEPT_MOST = 1000;
const spans = new Map<string, Span>();

function spanOf(key: string, open: boolean, seenFromBegin: boolean): Span | undefined {
  const known = spans.get(key);
  if (known) {
    known.to ??= open ? undefined : performance.now();
    return known;
  }
  if (!open) {
    return undefined;
  }
  const span: Span = { from: seenFromBegin ? performance.now() : undefined, to: undefined };
  spans.set(key, span);
  const oldest = spans.size > KEPT_MOST ? spans.keys().next().value : undefined;
  if (oldest !== undefined) {
    spans.delete(oldest);
  }
  return span;
}

/**
 * Ms that something has been open, or was; undefined where this page did not see its begin. Drawn again each
 * second while it is open.
 */
export function useObserved(key: string, open: boolean, seenFromBegin: boolean): number | undefined {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  const span = spanOf(key, open, seenFromBegin);
  const timed = open && span?.from !== undefined;
  useEffect(() => {
    if (timed) {
      const timer = setInterval(tick, 1000);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [timed]);
  return span?.from === undefined ? undefined : (span.to ?? performance.now()) - span.from;
}
