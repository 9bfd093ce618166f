/**
 * What was not read yet, by chat: how many messages it had when it was last looked at here. Kept in this
 * browser and shared by its tabs.
 */
import type { SessionInfo } from "midstream-client";
import { useSyncExternalStore } from "react";
import { kept, newest, readNumbers } from "../app/kept.js";
import { own } from "../own.js";

/** By session id: `message_count` when it was last seen. */
export type Seen = Readonly<Record<string, number>>;

const MOST = 1000;
/** Under this name: when this browser first saw the list. What was older then is not news. */
const BEGAN = "";

const seen = kept<Seen>("seen", readNumbers);

/** How many messages came since a chat was last looked at. */
export function unreadCount(record: Seen, session: SessionInfo): number {
  const began = record[BEGAN];
  if (began === undefined) {
    return 0;
  }
  const known = own(record, session.session_id) ?? (isOlder(session, began) ? session.message_count : 0);
  return Math.max(0, session.message_count - known);
}

const isOlder = (session: SessionInfo, began: number): boolean => session.created_at <= began;

/** The record after a chat was looked at; the same one where nothing is new. */
export function withSeen(record: Seen, sessionId: string, messageCount: number): Seen {
  if (own(record, sessionId) === messageCount) {
    return record;
  }
  const { [sessionId]: _, ...others } = record; // what was seen last is forgotten last
  const began = others[BEGAN];
  const kept = newest({ ...others, [sessionId]: messageCount }, MOST);
  return began === undefined ? kept : { ...kept, [BEGAN]: began };
}

/**
 * The record after the list was seen: at the first look the newest time by the server's clock, and for chats
 * from before it what they have now. A chat that began later, and was never opened here, is news.
 */
export function withListed(record: Seen, sessions: readonly SessionInfo[]): Seen {
  const began = record[BEGAN] ?? Math.max(0, ...sessions.map((one) => one.updated_at));
  const older = sessions.filter((one) => own(record, one.session_id) === undefined && isOlder(one, began));
  return older.length || record[BEGAN] === undefined
    ? {
        ...Object.fromEntries(older.map((one) => [one.session_id, one.message_count])),
        ...record,
        [BEGAN]: began,
      }
    : record;
}

export function markSeen(sessionId: string, messageCount: number): void {
  const now = withSeen(seen.get(), sessionId, messageCount);
  if (now !== seen.get()) {
    seen.set(now);
  }
}

/** Take note of the chats that are listed. */
export function markListed(sessions: readonly SessionInfo[]): void {
  const now = withListed(seen.get(), sessions);
  if (now !== seen.get()) {
    seen.set(now);
  }
}

export const useSeen = (): Seen => useSyncExternalStore(seen.subscribe, seen.get, seen.get);
