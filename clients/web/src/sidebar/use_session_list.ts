/** The list of chats, as the sidebar and the palette read it. */
import type { SessionInfo } from "midstream-client";
import { useSessions } from "midstream-client/react";
import { useCallback, useEffect } from "react";
import { keepWhenLeft, keptList } from "./kept_list.js";
import { markListed } from "./unread.js";

interface SessionListView {
  readonly sessions: readonly SessionInfo[];
  /** Whether the list was ever read. */
  readonly isKnown: boolean;
  readonly hasMore: boolean;
  /** Load the next page, once at a time. */
  loadMore(): void;
}

/** The chats, last changed first; the archived ones instead, where asked. Until the server says it, as they were. */
export function useSessionList(archived = false): SessionListView {
  const { sessions, state, hasMore, loadMore } = useSessions({ archived });
  const load = useCallback(() => {
    loadMore().catch(() => undefined); // asked again at the next scroll
  }, [loadMore]);
  const isLive = state === "live";
  useEffect(() => {
    if (isLive && !archived) {
      markListed(sessions);
      keepWhenLeft(sessions);
    }
  }, [sessions, isLive, archived]);
  const shown = isLive || sessions.length > 0 || archived ? sessions : keptList.get();
  return { sessions: shown, isKnown: isLive || shown.length > 0, hasMore, loadMore: load };
}
