/**
 * Calls and their answers: sending, matching, repeating, putting off (SPEC 7).
 *
 * A call that is harmless to repeat survives its connection and goes out again, under the same id, on the
 * next one; and with growing pauses where the server says so (`overloaded`, `unavailable`). Any other is
 * answered by `connection_lost` when the connection goes, because nobody can know whether it was carried
 * out; without a connection it is not even sent.
 */
import { type Method, type Params, type ResultOf, readResult } from "../protocol/calls.js";
import { sizeOf } from "../protocol/chunks.js";
import type { Codec } from "../protocol/codec.js";
import { limitExceeded, MidstreamError } from "../protocol/errors.js";
import type { ErrorInfo } from "../protocol/frames.js";
import { DEFAULT_LIMITS, type Limits } from "../protocol/limits.js";
import { problemIn } from "../protocol/values.js";
import { connectionLost, incompatibleServer, timedOut } from "./errors.js";
import { type Chance, fullJitter } from "./reconnect.js";
import type { Timers } from "./timers.js";
import type { Transport } from "./transport.js";

/** A result, or why there is none. */
export type Answer<M extends Method> = ResultOf<M> | MidstreamError;

export const isError = (answer: unknown): answer is MidstreamError => answer instanceof MidstreamError;

/**
 * `once`: it may not go out again by itself, nor wait for a connection. `urgent`: it may not go out again, and
 * goes before all others.
 */
export type CallKind = "repeatable" | "once" | "urgent";

interface PendingCall {
  readonly id: number;
  readonly method: Method;
  readonly params: unknown;
  kind: CallKind;
  /** Called once, in the middle of the stream: after the frames before the answer, before those after it. */
  reply: (answer: unknown) => void;
  state: "waiting" | "sent" | "put off";
  /** How often the server put it off. */
  attempts: number;
}

/** All calls of a client, over however many connections it takes. */
export class Exchange {
  /** What last stood between this client and the server, for the texts of errors. */
  problem: string | undefined;
  /** What the server last said that it takes. */
  limits: Limits = DEFAULT_LIMITS;
  /** How long `ask` waits; undefined: as long as it takes. */
  readonly timeoutMs: number | undefined;
  readonly #timers: Timers;
  readonly #chance: Chance;
  /** Those without an answer, in the order in which they were made. */
  readonly #calls = new Map<number, PendingCall>();
  #nextId = 0;
  #transport: Transport | undefined;
  #codec: Codec | undefined;
  #closed: MidstreamError | undefined;

  constructor(timers: Timers, chance: Chance, timeoutMs: number | undefined) {
    this.#timers = timers;
    this.#chance = chance;
    this.timeoutMs = timeoutMs;
  }

  /** Whether calls go out now. */
  get isConnected(): boolean {
    return !!this.#transport;
  }

  /** Make a call; `reply` is called once, perhaps before this returns. Returns what gives the answer up. */
  start<M extends Method>(
    method: M,
    params: Params<M>,
    kind: CallKind,
    reply: (answer: Answer<M>) => void,
  ): () => void {
    const isLost = kind === "once" && !this.#transport;
    const refusal = this.#closed ?? (isLost ? connectionLost(method, false) : problemIn(params));
    if (refusal) {
      reply(refusal);
      return ignore;
    }
    const id = this.#nextId++;
    const take = reply as (answer: unknown) => void;
    const call: PendingCall = { id, method, params, kind, reply: take, state: "waiting", attempts: 0 };
    this.#calls.set(id, call);
    this.#flush();
    return () => {
      // until the answer comes, a call that was sent still counts at the server
      call.reply = ignore;
      call.kind = "once";
      if (call.state !== "sent") {
        this.#calls.delete(id);
      }
    };
  }

  /**
   * Make a call and return what `take` makes of its result. `take` is called in the middle of the stream,
   * where the answer stands: the replica is then at the version that the answer shows.
   *
   * @throws MidstreamError the server's refusal, `connection_lost` or `timed_out`.
   */
  ask<M extends Method, T = ResultOf<M>>(
    method: M,
    params: Params<M>,
    kind: CallKind,
    take = (result: ResultOf<M>) => result as unknown as T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this;
      const stop =
        timeoutMs &&
        this.#timers.later(timeoutMs, () => {
          giveUp();
          reject(timedOut(`An answer to ${method}`, timeoutMs, this.problem));
        });
      const giveUp = this.start(method, params, kind, (answer) => {
        if (stop) {
          stop();
        }
        if (isError(answer)) {
          reject(answer);
        } else {
          resolve(take(answer));
        }
      });
    });
  }

  /** Use this connection: what waits goes out, and what is urgent goes first. */
  connect(transport: Transport, codec: Codec): void {
    this.#transport = transport;
    this.#codec = codec;
    this.#flush();
  }

  /** The connection is gone. */
  disconnect(): void {
    this.#transport = undefined;
    for (const call of [...this.#calls.values()]) {
      const wasSent = call.state === "sent";
      call.state = "waiting";
      if (call.kind !== "repeatable") {
        this.#calls.delete(call.id);
        call.reply(connectionLost(call.method, wasSent));
      }
    }
  }

  /** Answer every call with this error, and each that will come. */
  close(error: MidstreamError): void {
    this.#transport = undefined;
    this.#closed = error;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) {
      call.reply(error);
    }
  }

  /** Give an answer to the call that asked for it; one that nobody asked for is ignored. */
  answered(id: number, { result, error }: { readonly result?: unknown; readonly error?: ErrorInfo }): void {
    const call = this.#calls.get(id);
    if (call?.state === "sent") {
      this.#calls.delete(id);
      const answer = error ? refused(error) : read(call.method, result);
      if (isError(answer) && answer.retryable && call.kind === "repeatable") {
        this.#putOff(call);
      } else {
        call.reply(answer);
      }
      this.#flush();
    }
  }

  #flush(): void {
    for (;;) {
      const calls = [...this.#calls.values()];
      const waiting = calls.filter(({ state }) => state === "waiting");
      const call = waiting.find(({ kind }) => kind === "urgent") ?? waiting[0];
      const inFlight = calls.filter(({ state }) => state === "sent").length;
      if (!call || !this.#transport || !this.#codec || inFlight >= this.limits.calls_in_flight) {
        return;
      }
      call.state = "sent";
      const payload = this.#codec.encode(["call", call.id, call.method, call.params]);
      const size = sizeOf(payload);
      if (size > this.limits.frame_bytes) {
        this.#calls.delete(call.id);
        call.reply(limitExceeded("frame_bytes", this.limits.frame_bytes, size));
      } else {
        this.#transport.send(payload);
      }
    }
  }

  #putOff(call: PendingCall): void {
    call.state = "put off";
    this.#calls.set(call.id, call);
    this.#timers.later(fullJitter(this.#chance, call.attempts++), () => {
      if (call.state === "put off") {
        call.state = "waiting";
        this.#flush();
      }
    });
  }
}

const ignore = (): void => undefined;

const refused = ({ code, message, details, retryable }: ErrorInfo): MidstreamError =>
  new MidstreamError(code, message, details, retryable);

function read(method: Method, result: unknown): unknown {
  try {
    return readResult(method, result);
  } catch (error) {
    return incompatibleServer(`${method} had an unreadable result: ${error}.`);
  }
}
