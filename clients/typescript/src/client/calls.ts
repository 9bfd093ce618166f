/**
 * Calls that have no answer yet, and what becomes of them when the connection goes (SPEC 7).
 *
 * A call that is harmless to repeat waits for the next connection and goes out again under the same id; any
 * other is given back, because nobody can know whether it was carried out.
 */
import type { Method, Params, ResultOf } from "../protocol/calls.js";
import { MidstreamError } from "../protocol/errors.js";

/** A result, or why there is none. */
export type Answer<M extends Method> = ResultOf<M> | MidstreamError;

export const isError = (answer: unknown): answer is MidstreamError => answer instanceof MidstreamError;

/** How a call is to be made. */
export interface CallKind {
  /** It may go out again by itself. */
  readonly repeatable: boolean;
  /** It goes before all others. */
  readonly urgent?: boolean;
}

/** One call without an answer. */
export interface PendingCall extends CallKind {
  readonly id: number;
  readonly method: Method;
  readonly params: Params<Method>;
  /** Called once, in the middle of the stream: after the frames before the answer, before those after it. */
  readonly reply: (answer: unknown) => void;
  /** How often the server put it off. */
  attempts: number;
  /** Nobody waits for the answer any more; until it comes, the call still counts at the server. */
  abandoned: boolean;
}

/** All calls of a client without an answer: waiting to be sent, in flight, or put off for a while. */
export class CallTable {
  #nextId = 0;
  #waiting: PendingCall[] = [];
  readonly #inFlight = new Map<number, PendingCall>();
  readonly #later = new Set<PendingCall>();

  /** Take a call; it waits until `take` gives it out. */
  add(given: Omit<PendingCall, "id" | "attempts" | "abandoned">): PendingCall {
    const call: PendingCall = { ...given, id: this.#nextId++, attempts: 0, abandoned: false };
    const place = call.urgent ? this.#waiting.findIndex((other) => !other.urgent) : -1;
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, call);
    return call;
  }

  /** Return the next call to send, now in flight; undefined where none waits or `limit` are in flight. */
  take(limit: number): PendingCall | undefined {
    const call = this.#inFlight.size < limit ? this.#waiting.shift() : undefined;
    if (call) {
      this.#inFlight.set(call.id, call);
    }
    return call;
  }

  /** Return the call that was answered, which is forgotten; undefined for an id that is not in flight. */
  answered(id: number): PendingCall | undefined {
    const call = this.#inFlight.get(id);
    this.#inFlight.delete(id);
    return call;
  }

  /** Keep a call that the server put off, until `resume` or the next connection. */
  putOff(call: PendingCall): void {
    call.attempts++;
    this.#later.add(call);
  }

  resume(call: PendingCall): void {
    if (this.#later.delete(call)) {
      this.#waiting.push(call);
    }
  }

  /** Wait for this answer no longer. A call that was not sent never is. */
  abandon(call: PendingCall): void {
    call.abandoned = true;
    this.#later.delete(call);
    this.#waiting = this.#waiting.filter((other) => other !== call);
  }

  /** Keep what may be repeated; return the others, and whether each was sent. */
  disconnected(): [PendingCall, boolean][] {
    const sent = new Set(this.#inFlight.values());
    const all = this.clear();
    this.#waiting = all.filter((call) => call.repeatable).sort((a, b) => a.id - b.id);
    return all.filter((call) => !call.repeatable).map((call) => [call, sent.has(call)]);
  }

  /** Forget all calls, and return those that somebody waits for. */
  clear(): PendingCall[] {
    const all = [...this.#inFlight.values(), ...this.#waiting, ...this.#later];
    this.#inFlight.clear();
    this.#later.clear();
    this.#waiting = [];
    return all.filter((call) => !call.abandoned);
  }
}
