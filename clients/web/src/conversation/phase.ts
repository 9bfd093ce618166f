/** Why is it silent: what a running turn does, in words, and for how long. Pure. */
import type { Message, Turn } from "midstream-client";
import { duration } from "../parts/amounts.js";

/** How long it takes already, in ms; as `useTurnElapsed` tells it. */
interface Elapsed {
  readonly phaseMs: number;
  readonly silentMs: number;
}

/** What is said of a running turn. */
export interface Status {
  readonly text: string;
  /** For how long, in ms. */
  readonly ms: number;
  /** What it means, said only when it takes long. */
  readonly hint?: string;
  readonly waitsForYou: boolean;
}

/** After so long, more is said. */
export const LONG_MS = 10_000;
/** Before that, time is not worth a word. */
const SHORT_MS = 2000;

/** Say what a running turn does; undefined where the page shows it anyway, because text arrives. */
export function statusOf(turn: Turn, messages: readonly Message[], elapsed: Elapsed): Status | undefined {
  const ms = turn.phase === "streaming" ? elapsed.silentMs : elapsed.phaseMs;
  const say = (text: string, hint: string): Status => ({
    text,
    ms,
    waitsForYou: turn.phase === "waiting-user",
    ...(ms >= LONG_MS ? { hint } : {}),
  });
  switch (turn.phase) {
    case "starting":
      return say("Starting", "No agent has taken this up yet. It begins as soon as one is free.");
    case "waiting-model":
      return say("Waiting for the model", "It has sent nothing so far. You can go on waiting, or stop it.");
    case "running-tool":
      return say(`Running ${toolNames(turn, messages)}`, "The answer goes on when the tool is done.");
    case "waiting-user":
      return say("Waiting for your answer", "Nothing happens until somebody answers.");
    case "streaming":
      return ms >= LONG_MS
        ? say("Nothing new has come", "The model has paused in the middle of its answer.")
        : undefined;
  }
}

/** How long, in words; nothing for a moment. */
export const elapsedText = (ms: number): string => (ms < SHORT_MS ? "" : duration(ms));

function toolNames(turn: Turn, messages: readonly Message[]): string {
  const names = messages
    .slice(-8) // a turn's open tools are in its last message
    .filter((message) => message.turn_id === turn.turn_id)
    .flatMap((message) => message.parts)
    .flatMap((part) => (part.type === "tool" && part.state === "running" ? [part.tool_name] : []));
  return names.length ? [...new Set(names)].join(", ") : "a tool";
}
