/** One value of a session in a component. */
import { useRef, useSyncExternalStore } from "react";
import type { Session } from "../client/session.js";
import { blank, type SessionSnapshot, snapshotsOf } from "./snapshot.js";

/**
 * What `select` gives for the session. The component renders again only when that is another value by
 * `isEqual` (`Object.is` where there is none), however much else changes. `select` should only read, and be
 * quick: it is asked with every frame in which anything changed.
 */
export function useSessionValue<T>(
  session: Session,
  select: (session: SessionSnapshot) => T,
  isEqual: (before: T, now: T) => boolean = Object.is,
): T {
  const last = useRef<Selected<T> | undefined>(undefined);
  const snapshots = snapshotsOf(session);
  const selected = (snapshot: SessionSnapshot): T => {
    const before = last.current;
    if (before?.snapshot === snapshot && before.select === select) {
      return before.value;
    }
    const now = select(snapshot);
    const value = before && isEqual(before.value, now) ? before.value : now;
    last.current = { snapshot, select, value };
    return value;
  };
  return useSyncExternalStore(
    snapshots.subscribe,
    () => selected(snapshots.read()),
    () => selected(blankOf(session)),
  );
}

/** What was selected last, of what and by whom. */
interface Selected<T> {
  readonly snapshot: SessionSnapshot;
  readonly select: (session: SessionSnapshot) => T;
  readonly value: T;
}

const blanks = new WeakMap<Session, SessionSnapshot>();

function blankOf(session: Session): SessionSnapshot {
  const found = blanks.get(session) ?? blank(session);
  blanks.set(session, found);
  return found;
}
