/** What is told of a chat beside what is drawn: spoken news, the page's title, the title of a new chat. */
import type { Turn } from "midstream-client";
import type { SessionSnapshot } from "midstream-client/react";
import { useEffect, useRef } from "react";
import { giveFirstTitle } from "../app/first_title.js";
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

/** A chat that was begun here gets its title, also where that failed before. */
function useFirstTitle({ session, state }: SessionSnapshot): void {
  useEffect(() => {
    if (state === "live") {
      void giveFirstTitle(session);
    }
  }, [session, state]);
}
