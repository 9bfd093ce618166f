/** The title of a chat that was begun here: its first prompt's first line, once the server has the chat. */
import type { Session } from "midstream-client";
import { forgetFresh, freshTitle } from "./fresh.js";

const underWay = new Set<string>();

/** Give a fresh chat its title. Where that fails the chat stays fresh, and it is tried again when it is shown. */
export async function giveFirstTitle(session: Session): Promise<void> {
  const { sessionId } = session;
  const title = freshTitle(sessionId);
  if (title === undefined || underWay.has(sessionId)) {
    return;
  }
  underWay.add(sessionId);
  try {
    await session.until(() => session.state === "live" && session.info?.message_count);
    if (session.info?.title === undefined && title) {
      await session.update({ title });
    }
    forgetFresh(session.sessionId); // the server may have given it another id meanwhile
  } catch {
    // no connection, or it was closed or deleted meanwhile
  } finally {
    underWay.delete(sessionId);
  }
}
