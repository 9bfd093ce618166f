/** Which input waits, and where it is shown. Pure. */
import type { PromptParams } from "midstream-client";
import { summaryOf } from "./sent.js";

/** One input that waits. */
export interface Waiting {
  readonly message_id: string;
  /** What it says; undefined where another client sent it. */
  readonly text: string | undefined;
  /** `offline` and `sending`: the server does not have it yet. `queued`: it does. */
  readonly state: "offline" | "sending" | "queued";
}

export interface Waits {
  /** Shown above the composer: it waits for the running turn. */
  readonly above: readonly Waiting[];
  /** Shown as messages to be: nothing stands before them. */
  readonly inList: readonly PromptParams[];
}

/**
 * Part what waits. While a turn runs, or other input waits, a prompt waits above the composer; else it stands
 * where its message will be.
 */
export function waitsOf(
  pending: readonly PromptParams[],
  queue: readonly string[],
  state: { readonly isRunning: boolean; readonly isLive: boolean },
  textOf: (messageId: string) => string | undefined,
): Waits {
  const queued = queue.map((id): Waiting => ({ message_id: id, text: textOf(id), state: "queued" }));
  if (!state.isRunning && !queued.length) {
    return { above: [], inList: pending };
  }
  const above = pending.map(
    (prompt): Waiting => ({
      message_id: prompt.message_id,
      text: summaryOf(prompt.parts),
      state: state.isLive ? "sending" : "offline",
    }),
  );
  return { above: [...queued, ...above], inList: NONE };
}

const NONE: readonly PromptParams[] = [];
