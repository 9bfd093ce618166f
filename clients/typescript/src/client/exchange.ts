/** Calls and their answers: sending, matching, repeating, putting off (SPEC 7). */
import { type Method, type Params, RESULTS, type ResultOf } from "../protocol/calls.js";
import { sizeOf } from "../protocol/chunks.js";
import type { Codec } from "../protocol/codec.js";
import { limitExceeded, MidstreamError } from "../protocol/errors.js";
import type { ErrorInfo } from "../protocol/frames.js";
import { DEFAULT_LIMITS, type Limits } from "../protocol/limits.js";
import { problemIn } from "../protocol/values.js";
import { type Answer, type CallKind, CallTable, isError, type PendingCall } from "./calls.js";
import { connectionLost, incompatibleServer, timedOut } from "./errors.js";
import { fullJitter } from "./reconnect.js";
import type { Timers } from "./timers.js";
import type { Transport } from "./transport.js";

/**
 * All calls of a client, over however many connections it takes.
 *
 * A repeatable call survives its connection, and is made again, with growing pauses, where the server says
 * that it may be (`overloaded`, `unavailable`). Any other is answered by `connection_lost` when the
 * connection goes, and is not even sent without one.
 */
export class Exchange {
  readonly #timers: Timers;
  readonly #random: () => number;
  /** What last stood between this client and the server, for the texts of errors. */
  problem: string | undefined;
  /** What the server last said that it takes. */
  limits: Limits = DEFAULT_LIMITS;
  readonly #table = new CallTable();
  #transport: Transport | undefined;
  #codec: Codec | undefined;
  #isHeld = false;
  #closed: MidstreamError | undefined;

  constructor(
    timers: Timers,
    random: () => number,
    /** How long `ask` waits; undefined: as long as it takes. */
    readonly timeoutMs: number | undefined,
  ) {
    this.#timers = timers;
    this.#random = random;
  }

  /** Whether calls go out now. */
  get isConnected(): boolean {
    return this.#transport !== undefined;
  }

  /** Make a call; `reply` is called once, perhaps before this returns. */
  start<M extends Method>(
    method: M,
    params: Params<M>,
    kind: CallKind,
    reply: (answer: Answer<M>) => void,
  ): PendingCall | undefined {
    const refusal =
      this.#closed ??
      (kind.repeatable || this.#transport ? undefined : connectionLost(method, false)) ??
      problemIn(params, this.limits.nesting - 1);
    if (refusal) {
      reply(refusal);
      return undefined;
    }
    const call = this.#table.add({ method, params, ...kind, reply: reply as (answer: unknown) => void });
    this.#flush();
    return call;
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
    repeatable: boolean,
    take: (result: ResultOf<M>) => T = (result) => result as unknown as T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let stop: (() => void) | undefined;
      const call = this.start(method, params, { repeatable }, (answer) => {
        stop?.();
        if (isError(answer)) {
          reject(answer);
        } else {
          resolve(take(answer));
        }
      });
      const { timeoutMs } = this;
      if (call && timeoutMs !== undefined) {
        stop = this.#timers.later(timeoutMs, () => {
          this.#table.abandon(call);
          reject(timedOut(`An answer to ${method}`, timeoutMs, this.problem));
        });
      }
    });
  }

  /** Use this connection. Nothing goes out until `release`, so that what is urgent goes first. */
  connect(transport: Transport, codec: Codec, limits: Limits): void {
    Object.assign(this, { transport, codec, limits, isHeld: true });
  }

  /** Send what waits and may go, and from now on what is started. */
  release(): void {
    this.#isHeld = false;
    this.#flush();
  }

  /** The connection is gone. */
  disconnect(): void {
    this.#transport = undefined;
    for (const [call, sent] of this.#table.disconnected()) {
      call.reply(connectionLost(call.method, sent));
    }
  }

  /** Answer every call with this error, and each that will come. */
  close(error: MidstreamError): void {
    this.#transport = undefined;
    this.#closed = error;
    for (const call of this.#table.clear()) {
      call.reply(error);
    }
  }

  /** Give an answer to the call that asked for it; one that nobody asked for is ignored. */
  answered(id: number, answer: { readonly result: unknown } | { readonly error: ErrorInfo }): void {
    const call = this.#table.answered(id);
    if (call && !call.abandoned) {
      this.#settle(call, "error" in answer ? refused(answer.error) : read(call.method, answer.result));
    }
    this.#flush();
  }

  #settle(call: PendingCall, answer: unknown): void {
    if (isError(answer) && answer.retryable && call.repeatable) {
      const pause = fullJitter(this.#random, call.attempts);
      this.#table.putOff(call);
      this.#timers.later(pause, () => {
        this.#table.resume(call);
        this.#flush();
      });
    } else {
      call.reply(answer);
    }
  }

  #flush(): void {
    while (this.#transport && this.#codec && !this.#isHeld) {
      const call = this.#table.take(this.limits.calls_in_flight);
      if (!call) {
        return;
      }
      const payload = this.#codec.encode(["call", call.id, call.method, call.params]);
      const size = sizeOf(payload);
      if (size > this.limits.frame_bytes) {
        this.#table.answered(call.id);
        call.reply(limitExceeded("frame_bytes", this.limits.frame_bytes, size));
      } else {
        this.#transport.send(payload);
      }
    }
  }
}

const refused = ({ code, message, details, retryable }: ErrorInfo): MidstreamError =>
  new MidstreamError(code, message, details, retryable);

function read(method: Method, result: unknown): unknown {
  try {
    return RESULTS[method](result, "");
  } catch (error) {
    return incompatibleServer(`The result of ${method} cannot be read: ${error}.`);
  }
}
