/** Sending an answer, and saying what came of it. */
import { useRef, useState } from "react";
import { who } from "./words.js";

/** What sending an answer comes to. */
export interface Sending {
  /** What is on its way, by name: `approve`, `deny`, `answer`. */
  readonly what: string;
  /** Why it could not be done, in words. */
  readonly problem: string;
  send(what: string, request: () => Promise<unknown>): void;
}

/** The first one wins: a second answer is not sent while one is on its way. */
export function useAnswer(subject: string | undefined): Sending {
  const [what, setWhat] = useState("");
  const [problem, setProblem] = useState("");
  const busy = useRef(false);
  const send = async (name: string, request: () => Promise<unknown>) => {
    if (busy.current) {
      return; // also where two presses come before the next drawing
    }
    busy.current = true;
    setWhat(name);
    setProblem("");
    try {
      await request();
    } catch (error) {
      setProblem(problemOf(error, subject));
      setWhat("");
      busy.current = false;
    }
  };
  return { what, problem, send: (name, request) => void send(name, request) };
}

function problemOf(error: unknown, subject: string | undefined): string {
  const { code, message, details } = error as {
    readonly code?: string;
    readonly message?: string;
    readonly details?: { readonly status?: unknown; readonly resolved_by?: unknown };
  };
  if (code !== "interaction_closed") {
    return message ?? "The answer could not be sent. Try again.";
  }
  const by = typeof details?.resolved_by === "string" ? who(details.resolved_by, subject) : "";
  if (details?.status === "expired") {
    return "Too late: the time to answer is over.";
  }
  if (details?.status === "cancelled") {
    return "Too late: the question was cancelled.";
  }
  return by === "You" ? "You answered already, elsewhere." : `${by || "Somebody else"} was first.`;
}
