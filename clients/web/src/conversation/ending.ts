/** How a turn ended, in words. Pure. */
import type { Message, Turn } from "midstream-client";
import { elapsedText } from "./phase.js";

const REASONS: Readonly<Record<string, string>> = {
  runtime_interrupted: "The server ended while the answer was written.",
  agent_failed: "The agent's program failed.",
  no_agent: "No agent serves this chat now.",
  agent_lost: "The agent was lost, and nobody went on in time.",
};

/** The last error of the turn: one before it was recovered from. */
const errorIn = (message: Message | undefined) =>
  message?.parts.filter((part) => part.type === "error" && part.scope === "turn").at(-1);

/** Say why a turn ended; empty where an error part says it already. */
export function endingText(turn: Turn, message: Message | undefined): string {
  if (turn.state === "stopped") {
    const after = elapsedText((turn.finished_at ?? turn.started_at) - turn.started_at);
    return after ? `Stopped after ${after}` : "Stopped";
  }
  if (errorIn(message)) {
    return "";
  }
  const why = REASONS[turn.error?.code ?? ""] ?? turn.error?.message;
  return why ? `This answer failed. ${why}` : "This answer failed";
}

/** Whether to offer another attempt here; an error part that ends the message, and can be recovered from, offers it itself. */
export function offersRetry(turn: Turn, message: Message | undefined): boolean {
  const error = errorIn(message);
  const offersItself = error?.type === "error" && error.recoverable && error === message?.parts.at(-1);
  return turn.state === "stopped" || !offersItself;
}
