/** A prompt and the turn that takes it: what is known of them, and how one waits for them (SPEC 8). */
import type { CancelQueue, PromptParams, PromptResult, StopResult } from "../protocol/calls.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { Turn } from "../protocol/model.js";
import { inputCancelled } from "./errors.js";
import type { Timers } from "./timers.js";
import { Changes } from "./waiting.js";

/**
 * `pending`: not accepted yet (kept here, or on its way). `queued`: accepted, no turn has it. `running` and
 * what follows it: the state of the turn. `cancelled` and `refused`: there will be none.
 */
export type HandleState =
  | "pending"
  | "queued"
  | "running"
  | "completed"
  | "failed"
  | "stopped"
  | "cancelled"
  | "refused";

/**
 * A prompt that was given to a session, and the turn that takes it. It stays valid over disconnects: what it
 * waits for it learns from the replica, or by asking.
 */
export interface TurnHandle {
  /** The id of the prompt, and of the user message it becomes. */
  readonly messageId: string;
  /** Where the prompt is now, as far as this client knows. */
  readonly state: HandleState;
  /** The place in the queue, counted from 1, while it is queued and the place is known. */
  readonly position: number | undefined;
  /** The turn that took the prompt, once one did. */
  readonly turnId: string | undefined;
  /** That turn, as this client last saw it. */
  readonly turn: Turn | undefined;
  /** Why there is no turn to wait for: refused, cancelled, or the session closed here. */
  readonly error: MidstreamError | undefined;
  /** Call back after each change of what is above; the returned function ends that. */
  subscribe(listener: () => void): () => void;
  /** Wait until the server has the prompt on disk, and return what it said. */
  accepted(timeoutMs?: number): Promise<PromptResult>;
  /** Wait until a turn has the prompt, and return the turn's id. */
  started(timeoutMs?: number): Promise<string>;
  /** Wait until the turn that has the prompt is over, and return it: completed, failed or stopped. */
  finished(timeoutMs?: number): Promise<Turn>;
  /** Stop the turn that has the prompt; where none has, take the prompt back. */
  stop(): Promise<void>;
}

/** What a handle asks of its session. */
export interface TurnOwner {
  stop(turnId: string, cancelQueue?: CancelQueue): Promise<StopResult>;
  cancelInput(messageId: string): Promise<PromptResult>;
  readonly problem: string | undefined;
}

/** What this client knows of one prompt. Only grows: nothing older replaces anything newer. */
export class Progress implements TurnHandle {
  prompt: PromptParams;
  state: HandleState = "pending";
  position: number | undefined;
  turnId: string | undefined;
  turn: Turn | undefined;
  error: MidstreamError | undefined;
  /** A call is under way to learn more. */
  isAsking = false;
  readonly #owner: TurnOwner;
  readonly #changed: Changes;
  #result: PromptResult | undefined;

  constructor(prompt: PromptParams, owner: TurnOwner, timers: Timers) {
    this.prompt = prompt;
    this.#owner = owner;
    this.#changed = new Changes(timers);
  }

  get messageId(): string {
    return this.prompt.message_id;
  }

  /** Whether nothing more will happen. */
  get isOver(): boolean {
    return !!this.error || !["pending", "queued", "running"].includes(this.state);
  }

  subscribe(listener: () => void): () => void {
    return this.#changed.listen(listener);
  }

  accepted(timeoutMs?: number): Promise<PromptResult> {
    return this.#until("The prompt's acceptance", () => this.#result, timeoutMs);
  }

  started(timeoutMs?: number): Promise<string> {
    return this.#until("The turn's start", () => this.turnId, timeoutMs);
  }

  finished(timeoutMs?: number): Promise<Turn> {
    const ended = () => (this.turn?.state === "running" ? undefined : this.turn);
    return this.#until("The turn's end", ended, timeoutMs);
  }

  async stop(): Promise<void> {
    let { turnId } = this;
    if (!turnId && !this.isOver) {
      turnId = (await this.#owner.cancelInput(this.messageId)).turn_id; // a turn may have taken it meanwhile
    }
    if (turnId) {
      await this.#owner.stop(turnId);
    }
  }

  /** Take what the server says of the input. */
  learn(result: PromptResult): void {
    this.#result = result;
    if (result.state === "cancelled") {
      this.fail(inputCancelled(result.message_id), "cancelled");
    } else if (result.turn_id !== undefined) {
      this.took(result.turn_id);
    } else if (this.state === "pending") {
      this.state = "queued";
      this.position = result.position;
    }
    this.#changed.notify();
  }

  /** Take the turn that the input started, or into which it was absorbed. */
  took(turnId: string): void {
    if (this.turnId === undefined && !this.isOver) {
      this.turnId = turnId;
      this.position = undefined;
      this.state = "running";
      this.#changed.notify();
    }
  }

  /** Take the input's place in the queue. */
  moved(position: number): void {
    if (position !== this.position) {
      this.position = position;
      this.#changed.notify();
    }
  }

  /** Take the turn as it is now; an older copy is ignored. */
  follow(turn: Turn): void {
    if (!this.isOver && turn.revision > (this.turn?.revision ?? -1)) {
      this.turn = turn;
      this.state = turn.state;
      this.#changed.notify();
    }
  }

  /** There will be no more news, and why; the state stays where none is given. */
  fail(error: MidstreamError, state = this.state): void {
    if (!this.isOver) {
      this.error = error;
      this.state = state;
      this.#changed.notify();
    }
  }

  #until<T>(what: string, look: () => T | undefined, timeoutMs: number | undefined): Promise<T> {
    const value = () => {
      const found = look();
      if (found === undefined && this.error) {
        throw this.error;
      }
      return found;
    };
    return this.#changed.until(value, { what, timeoutMs, problem: () => this.#owner.problem });
  }
}
