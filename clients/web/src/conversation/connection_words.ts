/** The connection's state in words: what is, what happened, and what happens next. Pure. */
import type { Connection } from "midstream-client/react";

interface ConnectionWords {
  readonly what: string;
  readonly next: string;
  readonly canReload: boolean;
}

/** Say what is true; undefined while the page is connected. */
export function connectionWords(
  connection: Pick<Connection, "state" | "problem" | "error">,
): ConnectionWords | undefined {
  const { state, problem, error } = connection;
  const why = problem ? `${sentence(problem)} ` : "";
  switch (state) {
    case "live":
      return undefined;
    case "connecting":
      return problem
        ? { what: "Offline.", next: `${why}Connecting again now…`, canReload: false }
        : { what: "Connecting…", next: "", canReload: false };
    case "offline":
      return {
        what: "Offline.",
        next: `${why}The page tries again by itself; what you write is kept, and sent then.`,
        canReload: false,
      };
    case "closed":
      return {
        what: "Disconnected for good.",
        next: `${error ? `${sentence(error.message)} ` : ""}Reload the page to connect again; drafts are kept.`,
        canReload: true,
      };
  }
}

/** A text with a capital and a full stop. */
function sentence(text: string): string {
  const trimmed = text.trim();
  const whole = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
