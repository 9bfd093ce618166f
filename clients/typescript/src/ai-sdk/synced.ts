/** Keeping a `useChat` in step with its session: what others write, and turns that started elsewhere. */
import type { AbstractChat, UIMessage } from "ai";
import { useEffect, useLayoutEffect, useRef, useSyncExternalStore } from "react";
import type { SessionOptions } from "../client/client.js";
import type { Session } from "../client/session.js";
import { useClient } from "../react/provider.js";
import { sharedSession } from "../react/shared_session.js";
import { snapshotsOf } from "../react/snapshot.js";
import { promptMessage, toUIMessage } from "./messages.js";
import { answerApproval, CREATE, isInHand, keepsHistory } from "./transport.js";
import { answersOf, waits } from "./turn_stream.js";

/** What is used of what `useChat` returns. */
export type ChatHelpers<M extends UIMessage> = Pick<
  AbstractChat<M>,
  | "id"
  | "messages"
  | "status"
  | "sendMessage"
  | "regenerate"
  | "resumeStream"
  | "stop"
  | "addToolApprovalResponse"
> & { setMessages(messages: M[] | ((messages: M[]) => M[])): void };

/**
 * The chat, in step with its session: `useSyncedChat(useChat({ id, transport }))`.
 *
 * Its messages are the session's, whoever wrote them and wherever; a turn that started elsewhere, or runs
 * after a reload, is streamed. `stop` stops the turn, or takes back a message that no turn has.
 * `addToolApprovalResponse` answers at once; where somebody else was first, theirs is shown. `regenerate`,
 * and `sendMessage` with a `messageId`, are refused: a session keeps what was said.
 */
export function useSyncedChat<M extends UIMessage, C extends ChatHelpers<M>>(
  chat: C & ChatHelpers<M>,
  options: SessionOptions = CREATE,
): C & { readonly session: Session } {
  const { id } = chat;
  const shared = sharedSession(useClient(), id, options);
  const session = useSyncExternalStore(
    shared.subscribe,
    () => shared.read().session,
    () => shared.readOnServer().session,
  );
  const latest = useRef<ChatHelpers<M>>(chat);
  const isResuming = useRef(false);
  useLayoutEffect(() => {
    latest.current = chat;
  });
  useLayoutEffect(() => {
    // the server may have given the session another id than the chat's: so it is the hook that knows which is whose
    const step = () => latest.current.id === id && bringInStep(session, latest.current, isResuming);
    step();
    return snapshotsOf(session).subscribe(step);
  }, [session, id]);
  // what was held back while the chat was busy; and where the chat's messages were set by others
  useEffect(() => bringInStep(session, latest.current, isResuming));
  return { ...chat, ...actions<M>(session, chat), session };
}

/** What of the chat's actions means something else for a session. */
function actions<M extends UIMessage>(session: Session, chat: ChatHelpers<M>) {
  const sendMessage: ChatHelpers<M>["sendMessage"] = async (message, options) => {
    if (message?.messageId !== undefined) {
      throw keepsHistory("Another text of the question");
    }
    await chat.sendMessage(message, options);
  };
  const regenerate: ChatHelpers<M>["regenerate"] = async () => {
    throw keepsHistory("Another answer");
  };
  const stop = async () => {
    const handle = answersOf(session)
      .flatMap(({ options }) => options.handle ?? [])
      .at(-1);
    await (handle ? handle.stop() : session.stop());
  };
  const addToolApprovalResponse: ChatHelpers<M>["addToolApprovalResponse"] = ({ id, approved, reason }) =>
    answerApproval(session, id, approved, reason);
  return { sendMessage, regenerate, stop, addToolApprovalResponse };
}

/** Give the chat what the session has, but for the answer that the chat is told itself; and have a turn told. */
function bringInStep<M extends UIMessage>(
  session: Session,
  chat: ChatHelpers<M>,
  isResuming: { current: boolean },
): void {
  if (!session.info) {
    return; // nothing is known yet
  }
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  const wanted = wantedBy<M>(session, chat.messages, chat.status);
  if (wanted.length !== chat.messages.length || wanted.some((one, at) => one !== chat.messages[at])) {
    chat.setMessages((messages) => wantedBy<M>(session, messages, chat.status));
  }
  const isTold = answersOf(session).length > 0 || isResuming.current;
  const runs = session.turn && session.state !== "closed" && !waits(session.turn, session.messages);
  if (runs && !isBusy && !isTold) {
    isResuming.current = true;
    void chat.resumeStream().finally(() => {
      isResuming.current = false;
    });
  }
}

/** What the chat should have: of the answer that it is told, what it has of it. */
function wantedBy<M extends UIMessage>(session: Session, has: readonly M[], status: string): M[] {
  const isBusy = status === "submitted" || status === "streaming";
  const answers = isBusy ? answersOf(session) : [];
  const held = new Map(has.map((message) => [message.id, message]));
  const wanted: M[] = [];
  for (const message of session.messages) {
    const isTold = answers.some((answer) => answer.covers(message));
    const own = isTold ? held.get(message.message_id) : (toUIMessage(message) as M);
    wanted.push(...(own ? [own] : []));
  }
  const pending = new Map(session.pending.map((prompt) => [prompt.message_id, prompt]));
  for (const message of has) {
    const { id, role } = message;
    if (role === "user" && !session.message(id)) {
      const isKept = status !== "ready" || pending.has(id) || session.queue.includes(id);
      wanted.push(...(isKept || isInHand(session, id) ? [message] : []));
      pending.delete(id);
    }
  }
  return [...wanted, ...[...pending.values()].map((prompt) => promptMessage(prompt) as M)];
}
