/** The connection's state in words: what is, what happened, and what happens next. Pure. */
import type { Connection } from "midstream-client/react";

interface ConnectionWords {
  readonly what: string;
  readonly next: string;
  /** What the reader can do about it. */
  readonly action?: "reload" | "token";
}

/** Say what is true; undefined while the page is connected. */
export function connectionWords(
  connection: Pick<Connection, "state" | "problem" | "error" | "refusal">,
): ConnectionWords | undefined {
  const { state, problem, error, refusal } = connection;
  if (refusal && state !== "live") {
    return REFUSED[refusal];
  }
  const why = problem ? `${sentence(problem)} ` : "";
  switch (state) {
    case "live":
      return undefined;
    case "connecting":
      return problem
        ? { what: "Offline.", next: `${why}Connecting again now…` }
        : { what: "Connecting…", next: "" };
    case "offline":
      return {
        what: "Offline.",
        next: `${why}The page tries again by itself; what you write is kept, and sent then.`,
      };
    case "closed":
      if (error?.code === "another_subject") {
        return {
          what: "You are somebody else now.",
          next: `The server knows you as ${error.details.subject}. Reload the page to go on as that.`,
          action: "reload",
        };
      }
      return {
        what: "Disconnected for good.",
        next: `${error ? `${sentence(error.message)} ` : ""}Reload the page to connect again; drafts are kept.`,
        action: "reload",
      };
  }
}

const REFUSED = {
  unauthorized: {
    what: "The server asks for a token.",
    next: "Until you give one, nothing new is shown and nothing is sent.",
    action: "token",
  },
  token_expired: {
    what: "Your token has expired.",
    next: "Give another one to go on; what you write is kept, and sent then.",
    action: "token",
  },
} as const;

/** A text with a capital and a full stop. */
function sentence(text: string): string {
  const trimmed = text.trim();
  const whole = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
