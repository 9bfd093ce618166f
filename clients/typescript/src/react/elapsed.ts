/** Why it is silent: what the running turn does, and since when, by the server's clock. */
import { useEffect, useState } from "react";
import type { Session } from "../client/session.js";
import type { Turn } from "../protocol/model.js";
import { clockOf } from "./clock.js";
import { useClient } from "./provider.js";
import { snapshotsOf } from "./snapshot.js";
import { useSessionValue } from "./value.js";

/** What a running turn does now, and for how long, in ms. */
export interface TurnElapsed {
  readonly phase: Turn["phase"];
  /** How long it has been in this phase. */
  readonly phaseMs: number;
  /** How long nothing new was written. */
  readonly silentMs: number;
  /** How long the turn has run. */
  readonly turnMs: number;
}

const TICK_MS = 1000;

/** What the session's running turn does; renders again each second. Undefined while none runs. */
export function useTurnElapsed(session: Session): TurnElapsed | undefined {
  const clock = clockOf(useClient());
  const turn = useSessionValue(session, (now) => now.turn);
  const [, tick] = useState(0);
  const isRunning = turn !== undefined;
  useEffect(() => {
    if (isRunning) {
      const timer = setInterval(() => tick((count) => count + 1), TICK_MS);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [isRunning]);
  if (!turn) {
    return undefined;
  }
  const written = snapshotsOf(session).read().messages.at(-1)?.updated_at ?? 0;
  const lastNews = Math.max(turn.phase_since, turn.started_at, written);
  const now = clock.now(lastNews);
  return {
    phase: turn.phase,
    phaseMs: now - turn.phase_since,
    silentMs: now - lastNews,
    turnMs: now - turn.started_at,
  };
}
