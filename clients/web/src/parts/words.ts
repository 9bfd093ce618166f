/** What the words of the protocol are called on the page. */
import type { InteractionPart, ToolPart } from "midstream-client";

const TOOL_ERRORS: { readonly [word: string]: string } = {
  turn_stopped: "Stopped before it was done.",
  turn_failed: "Cut off: the agent failed.",
  turn_completed: "Never finished: the agent ended without it.",
  session_disposed: "Cut off: the chat was deleted.",
  runtime_interrupted: "Cut off: the server was restarted. It may have had its effect.",
  step_abandoned: "Given up: the agent tried another way.",
  forked: "Not finished when the chat was copied.",
};

/** The error of a tool for people. */
export const toolError = (error: string): string =>
  (Object.hasOwn(TOOL_ERRORS, error) && TOOL_ERRORS[error]) || error;

/** Whether an error says only that the tool's turn ended. */
export const isCutOff = (error: string | undefined): boolean =>
  error !== undefined && Object.hasOwn(TOOL_ERRORS, error);

const CANCELLED: { readonly [reason: string]: string } = {
  withdrawn: "Withdrawn: the agent does not ask any more",
  turn_stopped: "Cancelled: the agent's work ended",
  session_disposed: "Cancelled: the chat was deleted",
  runtime_interrupted: "Cancelled: the server was restarted",
};

/** Who did it, as a subject of a sentence. */
export const who = (by: string | undefined, subject: string | undefined): string =>
  by === undefined ? "Somebody" : by === subject ? "You" : by;

/** What became of a question that is not pending any more, in a few words. */
export function outcome(part: InteractionPart, subject: string | undefined): string {
  const by = who(part.resolved_by, subject);
  if (part.status === "expired") {
    return "Expired without an answer";
  }
  if (part.status === "cancelled") {
    return CANCELLED[part.cancel_reason ?? ""] ?? "Cancelled";
  }
  if (part.response?.kind === "approval") {
    if (part.approval_mode) {
      return `Approved automatically: ${by === "You" ? "you" : by} allowed everything in this chat`;
    }
    const done = part.response.decision === "approved" ? "Approved" : "Denied";
    return `${done} by ${by === "You" ? "you" : by}`;
  }
  return `Answered by ${by === "You" ? "you" : by}`;
}

/** Whether a tool was not run because a person said no. */
export const isDenied = (part: ToolPart, asked: readonly InteractionPart[]): boolean => {
  const response = asked.at(-1)?.response;
  return part.state === "failed" && response?.kind === "approval" && response.decision === "denied";
};
