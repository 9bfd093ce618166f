/**
 * When to connect, to ask whether the link lives, to give it up, and to come back (SPEC 4.7).
 *
 * `Reconnect` is told what happened and what time it is, and answers with what is to be done. It opens
 * nothing, waits for nothing and reads no clock. All times are in ms.
 */
import type { Environment } from "./environment.js";

/** Whether to connect again after this close code: always, but in the range that says no (SPEC 11.3). */
export const comesBack = (code: number): boolean => code < 4500 || code > 4999;

/** The times of a connection, in ms. */
export interface Policy {
  /** The first pause is a random one up to this; each further one up to twice the one before. */
  readonly backoffMs: number;
  readonly backoffLimitMs: number;
  /** A connection that lived this long was good: the pauses begin anew. */
  readonly stableMs: number;
  /** From the first packet to the `welcome`. */
  readonly connectMs: number;
  /** After a sleep of the machine: how long the answer to a ping may take at most. */
  readonly probeMs: number;
  /** On return to the foreground: how long nothing at all may come before the connection is given up. */
  readonly wakeMs: number;
  /** How often the clocks are looked at to notice a sleep; never more than a third of a heartbeat. */
  readonly checkMs: number;
}

export const DEFAULT_POLICY: Policy = {
  backoffMs: 500,
  backoffLimitMs: 30_000,
  stableMs: 10_000,
  connectMs: 10_000,
  probeMs: 5000,
  wakeMs: 700,
  checkMs: 5000,
};

/** What an environment has of it. */
export type Chance = Pick<Environment, "random">;

/** A random pause from 0 to a bound that doubles with each attempt, so that clients do not come back together. */
export const fullJitter = (chance: Chance, attempt: number, policy = DEFAULT_POLICY): number =>
  chance.random() * Math.min(policy.backoffLimitMs, policy.backoffMs * 2 ** attempt);

/** What is to be done: open a connection, give it up (then report `lost`), or send a `ping`. */
export type Effect =
  | { readonly kind: "connect" }
  | { readonly kind: "drop"; readonly why: string }
  | { readonly kind: "ping"; readonly nonce: number };

type Phase = "idle" | "connecting" | "open" | "dropping" | "waiting" | "closed";

/** The heartbeat until a `welcome` names the server's. */
const HEARTBEAT_MS = 15_000;
/** The longest pause that a server may ask for. */
const GOAWAY_LIMIT_MS = 600_000;
/** A server that names a shorter heartbeat is not believed. */
const LEAST_HEARTBEAT_MS = 100;

/**
 * Keeps one connection alive for as long as it is wanted. The owner calls `poll` when `deadline` has passed,
 * carries out the effects that any method returns, and reports what happened. As long as it is neither idle
 * nor closed there is a deadline, so it never gets stuck.
 */
export class Reconnect {
  readonly #chance: Chance;
  readonly #policy: Policy;
  phase: Phase = "idle";
  #heartbeatMs = HEARTBEAT_MS;
  #attempt = 0;
  #checkedAt = 0;
  #checkedWallMs = 0;
  #connectingAt = 0;
  #retryAt = 0;
  #welcomedAt: number | undefined;
  #receivedAt = 0;
  #pinged = false;
  #spokeAt = 0;
  #nonce = 0;
  /** How long the last answer to a `ping` took. */
  #roundTripMs = 0;
  #probe: { nonce: number; at: number; by: number; quietMs: number } | undefined;
  #returnAt: number | undefined;

  constructor(chance: Chance, policy: Policy = DEFAULT_POLICY) {
    this.#chance = chance;
    this.#policy = policy;
  }

  /** When `poll` is due; undefined while idle or closed. */
  get deadline(): number | undefined {
    const checkAt = this.#checkedAt + Math.min(this.#policy.checkMs, this.#heartbeatMs / 3);
    switch (this.phase) {
      case "connecting":
        return Math.min(this.#connectingAt + this.#policy.connectMs, checkAt);
      case "waiting":
        return Math.min(this.#retryAt, checkAt);
      case "open": {
        // while it is to be proven that the link lives, that alone decides
        const silenceAt = this.#receivedAt + this.#heartbeatMs * (this.#pinged ? 2 : 1);
        const livesUntil = this.#probeEnds() ?? Math.min(silenceAt, this.#spokeAt + this.#heartbeatMs);
        return Math.min(livesUntil, checkAt, this.#returnAt ?? checkAt);
      }
      case "dropping":
        return checkAt;
      default:
        return undefined;
    }
  }

  /** Begin: connect at once. */
  start(now: number, wallMs: number): Effect[] {
    if (this.phase !== "idle") {
      return [];
    }
    this.#checkClocks(now, wallMs);
    return this.#connect(now);
  }

  /** The server said `welcome`, and its heartbeat. */
  welcomed(now: number, heartbeatMs: number): void {
    if (this.phase === "connecting") {
      this.phase = "open";
      this.#heartbeatMs = Math.max(heartbeatMs, LEAST_HEARTBEAT_MS);
      this.#welcomedAt = this.#spokeAt = now;
      this.#probe = this.#returnAt = undefined;
      this.received(now);
    }
  }

  /** Something came from the server. */
  received(now: number): void {
    this.#receivedAt = now;
    this.#pinged = false;
  }

  /** A `ping` was answered. */
  ponged(now: number, nonce: number): void {
    this.#roundTripMs = now - this.#spokeAt;
    if (this.#probe && nonce >= this.#probe.nonce) {
      this.#probe = undefined;
    }
  }

  /** The server drains, and wants to see this client again after a while. */
  goaway(now: number, afterMs: number): void {
    if (this.phase === "open") {
      this.#returnAt = now + Math.min(afterMs, GOAWAY_LIMIT_MS);
    }
  }

  /** What an attempt waits for may take as long as it wants, until this is called again with the time of then. */
  waits(until: number): void {
    this.#connectingAt = until;
  }

  /** The connection or the attempt ended; `final`: coming back is of no use; `atOnce`: it should not wait. */
  lost(now: number, final = false, atOnce = false): void {
    if (this.phase === "idle" || this.phase === "closed") {
      return;
    }
    if (this.#welcomedAt !== undefined && now - this.#welcomedAt >= this.#policy.stableMs) {
      this.#attempt = 0;
    }
    this.phase = final ? "closed" : "waiting";
    // a browser tells of a socket that it ended in a frozen page only when that thaws: nobody should wait for it
    const pause = this.#probe || atOnce ? 0 : fullJitter(this.#chance, this.#attempt++, this.#policy);
    this.#retryAt = Math.max(now, this.#returnAt ?? now + pause);
    this.#welcomedAt = this.#probe = this.#returnAt = undefined;
  }

  /** The program is in the foreground again, or the network changed: prove that the link lives, or come back at once. */
  wake(now: number, wallMs: number): Effect[] {
    this.#checkClocks(now, wallMs);
    if (this.phase === "waiting") {
      return this.#connect(now);
    }
    if (this.phase === "connecting" && now - this.#connectingAt > this.#policy.wakeMs) {
      return this.#dropAndReturn(now, "an attempt before the sleep");
    }
    return this.phase === "open" ? this.#prove(now, this.#policy.wakeMs) : [];
  }

  /** Let the connection go until `wake`: there will be no timers, or sockets must not stay open. */
  suspend(why: string): Effect[] {
    this.#returnAt = Number.POSITIVE_INFINITY;
    if (this.phase === "waiting") {
      this.#retryAt = this.#returnAt;
    }
    return this.phase === "open" || this.phase === "connecting" ? this.#drop(why) : [];
  }

  /** End for good. */
  close(): void {
    this.phase = "closed";
  }

  /** Do what is due. */
  poll(now: number, wallMs: number): Effect[] {
    const slept = this.#checkClocks(now, wallMs);
    switch (this.phase) {
      case "connecting":
        return now >= this.#connectingAt + this.#policy.connectMs ? this.#drop("no answer in time") : [];
      case "waiting":
        return (slept && this.#retryAt < Number.POSITIVE_INFINITY) || now >= this.#retryAt
          ? this.#connect(now)
          : [];
      case "open":
        return this.#watch(now, slept);
      default:
        return [];
    }
  }

  #watch(now: number, slept: boolean): Effect[] {
    if (this.#returnAt !== undefined && now >= this.#returnAt) {
      return this.#drop("the server is going away");
    }
    if (slept && !this.#probe) {
      return this.#prove(now, this.#policy.probeMs);
    }
    if (this.#probe) {
      // what still comes may have been under way before; only its end says that nothing will follow
      return now >= (this.#probeEnds() as number) ? this.#dropAndReturn(now, "no answer after a sleep") : [];
    }
    // compared as the deadline is computed: with now - received, a rounding could put it off without end
    if (now >= this.#receivedAt + 2 * this.#heartbeatMs) {
      return this.#drop("silent too long");
    }
    const asks = now >= this.#receivedAt + this.#heartbeatMs && !this.#pinged;
    // it speaks in any case: the server's own ping may wait behind all that a slow link has to carry
    if (asks || now >= this.#spokeAt + this.#heartbeatMs) {
      this.#pinged ||= asks;
      return this.#ping(now);
    }
    return [];
  }

  #prove(now: number, least: number): Effect[] {
    // over a slow link an answer takes its time: a good connection must not be given up for that
    const quietMs = Math.max(least, 2 * this.#roundTripMs);
    this.#probe = { nonce: this.#nonce, at: now, by: now + Math.max(quietMs, this.#policy.probeMs), quietMs };
    return this.#ping(now);
  }

  #probeEnds(): number | undefined {
    const probe = this.#probe;
    return probe && Math.min(probe.by, Math.max(probe.at, this.#receivedAt) + probe.quietMs);
  }

  #ping(now: number): Effect[] {
    this.#spokeAt = now;
    return [{ kind: "ping", nonce: this.#nonce++ }];
  }

  #drop(why: string): Effect[] {
    this.phase = "dropping";
    return [{ kind: "drop", why }];
  }

  #dropAndReturn(now: number, why: string): Effect[] {
    this.#returnAt = now;
    return this.#drop(why);
  }

  #connect(now: number): Effect[] {
    this.phase = "connecting";
    this.#connectingAt = now;
    this.#returnAt = undefined;
    return [{ kind: "connect" }];
  }

  /** Whether the machine slept, or this program got no time: the next look came much later than it was due. */
  #checkClocks(now: number, wallMs: number): boolean {
    const gone = Math.max(wallMs - this.#checkedWallMs, now - this.#checkedAt);
    this.#checkedAt = now;
    this.#checkedWallMs = wallMs;
    return gone > this.#heartbeatMs + this.#policy.checkMs;
  }
}
