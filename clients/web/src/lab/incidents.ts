/** What each fault cost: what was missed, what the catch-up took, and whether both ends are equal after it. */

export type Fault = "cut" | "frozen" | "dropped" | "restarted" | "lost";
/** How the server brought the page up to date (SPEC 5.1). `late`: the connection held, frames were only late. */
export type SyncMode = "replay" | "catchup" | "reset" | "late";

/** One fault, from its beginning to the proof that nothing is missing. */
export interface Incident {
  readonly id: number;
  readonly fault: Fault;
  /** `away`: the fault lasts. `returning`: it is over, the page catches up. `over`: equal again, or not. */
  readonly stage: "away" | "returning" | "over";
  readonly beganAt: number;
  readonly endedAt?: number;
  /** Bytes that a second reader, whose link was whole, got meanwhile. */
  readonly missedBytes: number;
  /** Bytes that this page got from its return until it was equal. */
  readonly catchUpBytes: number;
  readonly mode?: SyncMode;
  /** What the digests said; absent until they were compared. */
  readonly isEqual?: boolean;
}

/** The newest first; only so many are kept. */
export type Incidents = readonly Incident[];

const KEPT = 20;

/** Begin an incident, where none is under way. A second fault during one belongs to it. */
export function begin(all: Incidents, fault: Fault, now: number): Incidents {
  const [newest] = all;
  if (newest && newest.stage !== "over") {
    return replace(all, { ...newest, stage: "away", catchUpBytes: 0 });
  }
  const incident: Incident = {
    id: (newest?.id ?? 0) + 1,
    fault,
    stage: "away",
    beganAt: now,
    missedBytes: 0,
    catchUpBytes: 0,
  };
  return [incident, ...all].slice(0, KEPT);
}

/** The link is whole again: what comes from now on is the catch-up. */
export function returned(all: Incidents): Incidents {
  return change(all, "away", (incident) => ({ ...incident, stage: "returning" }));
}

/** The other reader got bytes, which this page did not. */
export function missed(all: Incidents, bytes: number): Incidents {
  return change(all, "away", (incident) => ({ ...incident, missedBytes: incident.missedBytes + bytes }));
}

/** This page got bytes. */
export function received(all: Incidents, bytes: number): Incidents {
  return change(all, "returning", (incident) => ({
    ...incident,
    catchUpBytes: incident.catchUpBytes + bytes,
  }));
}

/** A sync arrived; the first one says how the server did it. */
export function synced(all: Incidents, mode: SyncMode): Incidents {
  return change(all, "returning", (incident) => ({ ...incident, mode: incident.mode ?? mode }));
}

/** The page has all that the other reader had at its return. */
export function caughtUp(all: Incidents, now: number): Incidents {
  return change(all, "returning", (incident) => ({
    ...incident,
    stage: "over",
    endedAt: now,
    mode: incident.mode ?? "late",
  }));
}

/** The digests were compared. */
export function verified(all: Incidents, id: number, isEqual: boolean): Incidents {
  return all.map((incident) => (incident.id === id ? { ...incident, isEqual } : incident));
}

function change(all: Incidents, stage: Incident["stage"], made: (incident: Incident) => Incident): Incidents {
  const [newest] = all;
  return newest?.stage === stage ? replace(all, made(newest)) : all;
}

const replace = (all: Incidents, incident: Incident): Incidents => [incident, ...all.slice(1)];
