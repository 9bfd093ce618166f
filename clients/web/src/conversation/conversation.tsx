/** One chat: its head, its messages, and where the next is written. */
import type { Delivery, UserPart } from "midstream-client";
import { useClient, useConnection, useServerClock, useSession } from "midstream-client/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { freshTitle } from "../app/fresh.js";
import { newId } from "../app/ids.js";
import { ONLY_READS, useCanWrite } from "../app/rights.js";
import * as act from "../app/session_actions.js";
import { Composer } from "../composer/composer.js";
import { withReturned } from "../composer/drafts.js";
import { sentText, wholeSentText } from "../composer/sent.js";
import { useDraft } from "../composer/use_draft.js";
import { WaitingList } from "../composer/waiting.js";
import { waitsOf } from "../composer/waits.js";
import { PartSurroundings, type Surroundings } from "../parts/surroundings.js";
import { markSeen } from "../sidebar/unread.js";
import { ConnectionLine } from "./connection_line.js";
import styles from "./conversation.module.css";
import { Gone } from "./gone.js";
import { Header } from "./header.js";
import { MessageList } from "./message_list.js";
import { renamed } from "./renaming.js";
import { send } from "./send.js";
import { useActions } from "./use_actions.js";
import { useConversationNews } from "./use_news.js";
import { useRefusals } from "./use_refusals.js";

export function Conversation({ sessionId }: { readonly sessionId: string }) {
  const isFresh = useRef(freshTitle(sessionId) !== undefined);
  const snapshot = useSession(sessionId, isFresh.current ? { create: true } : undefined);
  const { session, info, turn, state, pending, queue } = snapshot;
  const client = useClient();
  const subject = useConnection().welcome?.subject;
  const canWrite = useCanWrite();
  const now = useServerClock();
  const [text, setText] = useDraft(sessionId);
  const [editing, setEditing] = useState<string>();
  const count = info?.message_count;
  useSeenWhileVisible(sessionId, count);
  useConversationNews(snapshot);
  const takeText = useCallback(
    (returned: string) => setText((draft) => withReturned(draft, returned)),
    [setText],
  );
  const isFollowed = useRefusals(session, pending, takeText);

  const actions = useActions(session, setEditing, takeText, canWrite);
  const surroundings = useMemo(
    (): Surroundings => ({
      subject,
      now,
      canAnswer: canWrite,
      onRetry: canWrite ? (message) => actions.retry(message.turn_id) : undefined,
    }),
    [subject, now, canWrite, actions],
  );
  const id = session.sessionId;
  useEffect(() => {
    if (id !== sessionId) {
      renamed(sessionId, id);
    }
  }, [id, sessionId]);

  if (state === "closed" && client.state !== "closed") {
    return <Gone snapshot={snapshot} />;
  }
  const isLive = state === "live";
  const waits = waitsOf(pending, queue, { isRunning: turn !== undefined, isLive }, sentText);
  const onSend = (parts: readonly UserPart[], delivery: Delivery) =>
    send(session, parts, { messageId: newId("msg"), delivery }, isFollowed);
  return (
    <PartSurroundings value={surroundings}>
      <div className={styles.conversation}>
        <Header snapshot={snapshot} />
        <ConnectionLine />
        <MessageList snapshot={snapshot} pending={waits.inList} actions={actions} editing={editing} />
        <div className={styles.foot}>
          {info?.archived_at !== undefined ? (
            <Archived {...(canWrite && { onRestore: () => void act.archive(client, sessionId, false) })} />
          ) : canWrite ? (
            <>
              <WaitingList
                waiting={waits.above}
                onTakeBack={(one, again) =>
                  actions.takeBack(one, wholeSentText(one.message_id) ?? one.text, again)
                }
              />
              <Composer
                text={text}
                onText={setText}
                onSend={onSend}
                isRunning={turn !== undefined}
                isOffline={state === "offline"}
                onStop={() => void act.stop(session)}
                placeholder={turn ? "Add something meanwhile" : "Write a message"}
                autoFocus={matchMedia("(hover: hover)").matches}
              />
            </>
          ) : (
            <ReadOnly />
          )}
        </div>
      </div>
    </PartSurroundings>
  );
}

/** What is on the screen is seen: at once, or when the page comes back to the foreground. */
function useSeenWhileVisible(sessionId: string, count: number | undefined): void {
  useEffect(() => {
    const look = () => {
      if (count !== undefined && document.visibilityState === "visible") {
        markSeen(sessionId, count);
      }
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [sessionId, count]);
}

function Archived({ onRestore }: { readonly onRestore?: () => void }) {
  return (
    <div className={styles.archived}>
      <p>This chat is archived. It can be read, but nothing can be added.</p>
      {onRestore && (
        <button type="button" onClick={onRestore}>
          Restore
        </button>
      )}
    </div>
  );
}

/** In place of where a message is written. */
export const ReadOnly = () => (
  <p className={styles.archived} data-read-only>
    {ONLY_READS}: to write, ask for one with the scope “write”.
  </p>
);
