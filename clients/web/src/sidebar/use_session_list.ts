/** The list of chats, as the sidebar and the palette read it. */
import type { SessionInfo } from "midstream-client";
import { useSessions } from "midstream-client/react";
import { useCallback } from "react";

interface SessionListView {
  readonly sessions: readonly SessionInfo[];
  /** Whether the list was ever read. */
  readonly isKnown: boolean;
  readonly hasMore: boolean;
  /** Load the next page, once at a time. */
  loadMore(): void;
}

/** The chats, last changed first; the archived ones instead, where asked. */
export function useSessionList(archived = false): SessionListView {
  const { sessions, state, hasMore, loadMore } = useSessions({ archived });
  const load = useCallback(() => {
    loadMore().catch(() => undefined); // asked again at the next scroll
  }, [loadMore]);
  return { sessions, isKnown: state === "live" || sessions.length > 0, hasMore, loadMore: load };
}
