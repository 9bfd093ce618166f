/** The list of sessions as the thread list of assistant-ui. */
import type { ExternalStoreThreadListAdapter } from "@assistant-ui/react";
import { useMemo } from "react";
import type { Client } from "../client/client.js";
import type { Session } from "../client/session.js";
import type { SessionInfo } from "../protocol/model.js";
import { useClient } from "../react/provider.js";
import { useSessions } from "../react/sessions.js";
import { sharedSession } from "../react/shared_session.js";

export interface ThreadListOptions {
  /** Show a session. */
  readonly onSwitchToSession: (sessionId: string) => void;
  /** Show a new chat. */
  readonly onSwitchToNew?: () => void;
}

/** The thread list for `useMidstreamRuntime`: all sessions, those that are archived too, kept as the server has them. */
export function useMidstreamThreadList(options: ThreadListOptions): ExternalStoreThreadListAdapter {
  const client = useClient();
  const live = useSessions();
  const archived = useSessions({ archived: true });
  const threads = useMemo(() => live.sessions.map((info) => threadOf(info, "regular")), [live.sessions]);
  const archivedThreads = useMemo(
    () => archived.sessions.map((info) => threadOf(info, "archived")),
    [archived.sessions],
  );
  const actions = useMemo(() => listActions(client), [client]);
  const { onSwitchToSession, onSwitchToNew } = options;
  return {
    threads,
    archivedThreads,
    isLoading: live.state === "connecting" || live.state === "syncing",
    onSwitchToThread: onSwitchToSession,
    ...(onSwitchToNew && { onSwitchToNewThread: onSwitchToNew }),
    ...actions,
  };
}

function threadOf<S extends "regular" | "archived">(info: SessionInfo, status: S) {
  const { session_id: id, title, running_turn_id, pending_interactions = 0 } = info;
  const custom = { isRunning: running_turn_id !== undefined, pending_interactions };
  return { id, remoteId: id, status, title, custom };
}

function listActions(client: Client) {
  const act = async (sessionId: string, does: (session: Session) => Promise<unknown>): Promise<void> => {
    const shared = sharedSession(client, sessionId);
    const release = shared.subscribe(() => undefined);
    try {
      await does(shared.read().session);
    } finally {
      release();
    }
  };
  return {
    onRename: (id: string, title: string) => act(id, (session) => session.update({ title })),
    onArchive: (id: string) => act(id, (session) => session.archive()),
    onUnarchive: (id: string) => act(id, (session) => session.archive(false)),
    onDelete: (id: string) => act(id, (session) => session.delete()),
  };
}
