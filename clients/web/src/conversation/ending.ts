/** How a turn ended, in words. Pure. */
import type { Message, Turn } from "midstream-client";
import { duration } from "./phase.js";

const REASONS: Readonly<Record<string, string>> = {
  runtime_interrupted: "The server ended while the answer was written.",
  agent_failed: "The agent's program failed.",
  no_agent: "No agent serves this chat now.",
  agent_lost: "The agent was lost, and nobody went on in time.",
};

const errorIn = (message: Message | undefined) =>
  message?.parts.find((part) => part.type === "error" && part.scope === "turn");

/** Say why a turn ended; what an error part says already is not repeated. */
export function endingText(turn: Turn, message: Message | undefined): string {
  const after = duration((turn.finished_at ?? turn.started_at) - turn.started_at);
  if (turn.state === "stopped") {
    return after ? `Stopped after ${after}` : "Stopped";
  }
  const why = errorIn(message) ? "" : (REASONS[turn.error?.code ?? ""] ?? turn.error?.message ?? "");
  return ["This answer failed", why && `: ${why}`].filter(Boolean).join("");
}

/** Whether to offer another attempt here; an error part that can be recovered from offers it itself. */
export function offersRetry(turn: Turn, message: Message | undefined): boolean {
  const error = errorIn(message);
  return turn.state === "stopped" || !(error?.type === "error" && error.recoverable);
}
