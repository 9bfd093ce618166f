/** One chat: its head, its messages, and where the next is written. */
import type { Delivery, UserPart } from "midstream-client";
import { useClient, useConnection, useSession } from "midstream-client/react";
import { useEffect, useMemo, useRef, useState } from "react";
import { attempt } from "../app/errors.js";
import { freshTitle } from "../app/fresh.js";
import { newId } from "../app/ids.js";
import { chatPath, navigate } from "../app/route.js";
import * as act from "../app/session_actions.js";
import { focusComposer } from "../app/shell.js";
import { Composer } from "../composer/composer.js";
import { editPlace, keepDraft, withReturned } from "../composer/drafts.js";
import { forgetSent, rememberSent, sentText, wholeSentText } from "../composer/sent.js";
import { useDraft } from "../composer/use_draft.js";
import { WaitingList } from "../composer/waiting.js";
import { waitsOf } from "../composer/waits.js";
import { PartSurroundings, type Surroundings } from "../parts/surroundings.js";
import { markSeen } from "../sidebar/unread.js";
import type { Actions } from "./actions.js";
import { ConnectionLine } from "./connection_line.js";
import styles from "./conversation.module.css";
import { Gone } from "./gone.js";
import { Header } from "./header.js";
import { MessageList } from "./message_list.js";
import { resend } from "./resend.js";
import { retry } from "./retry.js";
import { takeBack } from "./take_back.js";
import { useConversationNews } from "./use_news.js";
import { useRefusals } from "./use_refusals.js";

export function Conversation({ sessionId }: { readonly sessionId: string }) {
  const isFresh = useRef(freshTitle(sessionId) !== undefined);
  const snapshot = useSession(sessionId, isFresh.current ? { create: true } : undefined);
  const { session, info, turn, state, pending, queue } = snapshot;
  const client = useClient();
  const { welcome } = useConnection();
  const [text, setText] = useDraft(sessionId);
  const [editing, setEditing] = useState<string>();
  const count = info?.message_count;
  useSeenWhileVisible(sessionId, count);
  useConversationNews(snapshot);
  const takeText = (returned: string) => setText((now) => withReturned(now, returned));
  useRefusals(session, pending, takeText);

  const actions = useMemo(
    (): Actions => ({
      session,
      edit: (messageId) => {
        setEditing(messageId);
        if (messageId === undefined) {
          focusComposer();
        }
      },
      resend: async (message, edited) => {
        const copy = await attempt("make the copy", () => resend({ client, session }, message, edited));
        if (copy !== undefined) {
          keepDraft(editPlace(message.message_id), "");
          navigate(chatPath(copy));
        }
      },
      retry: (turnId) => void retry(session, turnId),
      takeBack: (prompt, written, again) =>
        void takeBack(session, prompt.message_id).then((isBack) => {
          if (isBack && again && written) {
            setText((now) => withReturned(now, written));
            focusComposer();
          }
        }),
    }),
    [session, client, setText],
  );
  const surroundings = useMemo((): Surroundings => {
    const ahead = welcome ? welcome.time - Date.now() : 0;
    return {
      subject: welcome?.subject,
      now: () => Date.now() + ahead,
      onRetry: (message) => actions.retry(message.turn_id),
    };
  }, [welcome, actions]);

  if (state === "closed" && client.state !== "closed") {
    return <Gone snapshot={snapshot} />;
  }
  const isLive = state === "live";
  const waits = waitsOf(pending, queue, { isRunning: turn !== undefined, isLive }, sentText);
  const send = async (parts: readonly UserPart[], delivery: Delivery) => {
    const messageId = newId("msg");
    rememberSent(messageId, parts);
    const handle = await attempt("send the message", () => session.prompt(parts, { messageId, delivery }));
    if (!handle) {
      forgetSent(messageId);
    }
    return handle !== undefined;
  };
  return (
    <PartSurroundings value={surroundings}>
      <div className={styles.conversation}>
        <Header snapshot={snapshot} />
        <ConnectionLine />
        <MessageList snapshot={snapshot} pending={waits.inList} actions={actions} editing={editing} />
        <div className={styles.foot}>
          {info?.archived_at === undefined ? (
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
                onSend={send}
                isRunning={turn !== undefined}
                isOffline={state === "offline"}
                onStop={() => void act.stop(session)}
                placeholder={turn ? "Add something meanwhile" : "Write a message"}
                autoFocus={matchMedia("(hover: hover)").matches}
              />
            </>
          ) : (
            <Archived onRestore={() => void act.archive(client, sessionId, false)} />
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

function Archived({ onRestore }: { readonly onRestore: () => void }) {
  return (
    <div className={styles.archived}>
      <p>This chat is archived. It can be read, but nothing can be added.</p>
      <button type="button" onClick={onRestore}>
        Restore
      </button>
    </div>
  );
}
