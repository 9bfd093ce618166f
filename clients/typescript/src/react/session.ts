/** One session in components. */
import { useSyncExternalStore } from "react";
import type { SessionOptions } from "../client/client.js";
import { useClient } from "./provider.js";
import { type OpenSession, sharedSession } from "./shared_session.js";

/**
 * A session, opened at once and kept equal to the server's. All components that name it share it. When the
 * last one is gone, it stays open for half a minute, and as long as it has a turn that runs or input that
 * waits; then it is closed here, unless somebody else asked the client for it. It never ends a turn.
 *
 * `options` count for the first who asks.
 */
export function useSession(sessionId: string, options?: SessionOptions): OpenSession {
  const shared = sharedSession(useClient(), sessionId, options);
  return useSyncExternalStore(shared.subscribe, shared.read, shared.readOnServer);
}
