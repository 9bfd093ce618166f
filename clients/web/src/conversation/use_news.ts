/** What is told of a chat beside what is drawn: spoken news, the page's title, the title of a new chat. */
import type { Turn } from "midstream-client";
import type { SessionSnapshot } from "midstream-client/react";
import { useEffect, useRef } from "react";
import { forgetFresh, freshTitle } from "../app/fresh.js";
import { announce } from "../app/notice.js";
import { titleFor } from "../sidebar/groups.js";

const ENDINGS: Readonly<Record<Turn["state"], string>> = {
  running: "",
  completed: "The answer is finished.",
  failed: "The answer failed.",
  stopped: "The answer was stopped.",
};

export function useConversationNews(snapshot: SessionSnapshot): void {
  useSpokenNews(snapshot);
  useDocumentTitle(snapshot);
  useFirstTitle(snapshot);
}

/** Whole events for screen readers, never tokens. */
function useSpokenNews({ turn, turns, interactions }: SessionSnapshot): void {
  const running = useRef<string>(undefined);
  const asked = useRef<string>(undefined);
  const turnId = turn?.turn_id;
  useEffect(() => {
    const ended = turns.get(running.current ?? "");
    if (ended && ended.turn_id !== turnId && ENDINGS[ended.state]) {
      announce(ENDINGS[ended.state]);
    }
    running.current = turnId;
  }, [turnId, turns]);
  const question = interactions.at(-1)?.part;
  useEffect(() => {
    if (question && question.interaction_id !== asked.current) {
      const what = question.interaction_type === "approval" ? "Approval needed" : "The agent asks you";
      announce(`${what}: ${question.request.title}`);
    }
    asked.current = question?.interaction_id;
  }, [question]);
}

function useDocumentTitle({ info, interactions }: SessionSnapshot): void {
  const title = info ? titleFor(info) : "";
  const waits = interactions.length > 0;
  useEffect(() => {
    document.title = [waits ? "Waiting for you" : "", title, "midstream"].filter(Boolean).join(" · ");
  }, [title, waits]);
}

/** A chat that was begun here gets its title of its first prompt, once the server has it. */
function useFirstTitle({ session, info, state }: SessionSnapshot): void {
  const known = info !== undefined && state === "live";
  const hasTitle = info?.title !== undefined;
  const hasMessages = Boolean(info?.message_count);
  useEffect(() => {
    const title = freshTitle(session.sessionId);
    if (!known || title === undefined) {
      return;
    }
    if (hasTitle || !title) {
      forgetFresh(session.sessionId);
    } else if (hasMessages) {
      session.update({ title }).then(
        () => forgetFresh(session.sessionId),
        () => undefined, // tried again when the chat is live again
      );
    }
  }, [session, known, hasTitle, hasMessages]);
}
