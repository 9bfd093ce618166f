/** The list of chats as it was last seen, for a page that is loaded while there is no connection. */
import type { SessionInfo } from "midstream-client";
import { kept } from "../app/kept.js";

const MOST = 100;

export const keptList = kept("list", readList);

let newest: readonly SessionInfo[] | undefined;

/** Keep this list when the page is left, or may be: a page is never told more than that. */
export function keepWhenLeft(sessions: readonly SessionInfo[]): void {
  if (newest === undefined) {
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden" && newest) {
        keptList.set(keepable(newest));
      }
    });
  }
  newest = sessions;
}

/** What of a list is worth keeping: what a chat is, and not what it does now, which is old when it is read. */
export function keepable(sessions: readonly SessionInfo[]): readonly SessionInfo[] {
  return sessions
    .slice(0, MOST)
    .map(({ running_turn_id: _turn, queue: _queue, pending_interactions: _pending, ...rest }) => rest);
}

/** Read a kept list, as far as it is one. */
export function readList(stored: unknown): readonly SessionInfo[] {
  return Array.isArray(stored) ? stored.filter(isSession) : [];
}

function isSession(value: unknown): value is SessionInfo {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const { session_id, title, revision, created_at, updated_at, message_count } = value as SessionInfo;
  const numbers: unknown[] = [revision, created_at, updated_at, message_count];
  return (
    typeof session_id === "string" &&
    (title === undefined || typeof title === "string") &&
    numbers.every((number) => Number.isSafeInteger(number))
  );
}
