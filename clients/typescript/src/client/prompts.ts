/** The prompts of one session: sent once and in order, and followed until their turns end (SPEC 8). */
import type { PromptParams, PromptResult } from "../protocol/calls.js";
import { MidstreamError } from "../protocol/errors.js";
import type { Replica } from "../protocol/merge.js";
import { outboxFull } from "./errors.js";
import { type Answer, type Exchange, isError } from "./exchange.js";
import type { Timers } from "./timers.js";
import { Progress, type TurnOwner } from "./turns.js";

/** What prompts are given. At most `outboxLimit` wait, the one on its way included. */
export interface PromptOptions {
  readonly outboxLimit: number;
  /** Called when a prompt need not be kept any more: the server accepted or refused it, or it was taken back. */
  drop(messageId: string): void;
  /** Called when the list of those that wait has changed. */
  onChange(): void;
}

/** What prompts use of their client. */
export interface PromptTools {
  readonly exchange: Exchange;
  readonly timers: Timers;
}

/** Who keeps prompts over a reload until the server has them. */
export interface PromptKeeper {
  /** Forget a prompt: the server accepted or refused it, or it was taken back. */
  dropPrompt(messageId: string): void;
}

/**
 * Sends the prompts of a session, and learns what becomes of them: from the replica where it can, and where
 * that cannot tell (the input left the queue unseen, the turn is not among those it holds) by asking.
 *
 * They go out one by one: the next is sent when the one before has its answer, so that a prompt which the
 * server puts off is never overtaken. The same `message_id` goes out however often it must be sent, so the
 * server takes it once.
 */
export class Prompts {
  /** Those that the server has not accepted yet, in order; the same list until something changes. */
  waiting: readonly PromptParams[] = [];
  readonly #replica: Replica;
  readonly #tools: PromptTools;
  readonly #owner: TurnOwner;
  readonly #options: PromptOptions;
  readonly #followed = new Map<string, Progress>();
  #isSending = false;
  #isLive = false;
  #isClosed = false;

  constructor(replica: Replica, tools: PromptTools, owner: TurnOwner, options: PromptOptions) {
    this.#replica = replica;
    this.#tools = tools;
    this.#owner = owner;
    this.#options = options;
  }

  /** What is known of a prompt that is followed. */
  progress(messageId: string): Progress | undefined {
    return this.#followed.get(messageId);
  }

  /**
   * Take a prompt and follow it; it is sent by `pump`. The same prompt again gives what is known of it.
   *
   * @throws MidstreamError `outbox_full`; `idempotency_conflict`: its id is that of another prompt.
   */
  add(prompt: PromptParams): Progress {
    const { message_id } = prompt;
    const known = this.#followed.get(message_id);
    if (known) {
      if (JSON.stringify(known.prompt.parts) !== JSON.stringify(prompt.parts)) {
        const text = `Prompt ${message_id} has other content.`;
        throw new MidstreamError("idempotency_conflict", text, { field: "message_id", id: message_id });
      }
      return known;
    }
    const { outboxLimit } = this.#options;
    if (this.waiting.length >= outboxLimit) {
      throw outboxFull(this.#replica.sessionId, outboxLimit);
    }
    this.waiting = [...this.waiting, prompt];
    const progress = this.#follow(prompt);
    this.#options.onChange();
    return progress;
  }

  /** Take prompts that were kept over a reload: before all others, and whatever the limit. */
  restore(kept: readonly PromptParams[]): void {
    const news = kept.filter(({ message_id }) => !this.#followed.has(message_id));
    this.waiting = [...news, ...this.waiting];
    for (const prompt of news) {
      this.#follow(prompt);
    }
    this.#options.onChange();
  }

  #follow(prompt: PromptParams): Progress {
    const progress = new Progress(prompt, this.#owner, this.#tools.timers);
    this.#followed.set(prompt.message_id, progress);
    return progress;
  }

  /** Send the next prompt, if it is its turn, and the session is there: it may have to be made first. */
  pump(): void {
    const progress = this.#followed.get(this.waiting[0]?.message_id ?? "");
    if (progress && this.#replica.session && !this.#isClosed && !this.#isSending) {
      this.#isSending = true;
      this.#tools.exchange.start("prompt", progress.prompt, "repeatable", (answer) =>
        this.#accepted(progress, answer),
      );
    }
  }

  /** Take back a prompt that was never sent; undefined where that cannot be done here. */
  withdraw(message_id: string): PromptResult | undefined {
    const at = this.waiting.findIndex((prompt) => prompt.message_id === message_id);
    if (at < 0 || (at === 0 && this.#isSending)) {
      return undefined;
    }
    this.waiting = this.waiting.filter((prompt) => prompt.message_id !== message_id);
    const result: PromptResult = { state: "cancelled", message_id };
    this.#followed.get(message_id)?.learn(result);
    this.#followed.delete(message_id);
    this.#options.drop(message_id);
    this.#options.onChange();
    return result;
  }

  /** Look into the replica for news of the prompts; `synced`: something may have been missed. */
  settle(isLive: boolean, synced: boolean): void {
    this.#isLive = isLive;
    if (isLive) {
      for (const progress of [...this.#followed.values()]) {
        this.#look(progress, synced);
      }
      this.pump();
    }
  }

  /** Follow nothing any more; handles get the error. */
  close(error: MidstreamError): void {
    this.#isClosed = true;
    for (const progress of this.#followed.values()) {
      progress.fail(error);
    }
    this.#followed.clear();
  }

  #accepted(progress: Progress, answer: Answer<"prompt">): void {
    if (this.#isClosed) {
      return; // the prompt stays in the store: whether it was taken is not known
    }
    this.waiting = this.waiting.slice(1);
    this.#isSending = false;
    this.#options.drop(progress.prompt.message_id);
    this.#learn(progress, answer);
    this.#options.onChange();
    this.pump();
  }

  /** Take the answer to a prompt, or to its repetition. */
  #learn(progress: Progress, answer: Answer<"prompt">): void {
    progress.isAsking = false;
    if (this.#isClosed) {
      return;
    }
    if (isError(answer)) {
      progress.fail(answer, progress.state === "pending" ? "refused" : undefined);
    } else {
      progress.learn(answer);
    }
    // what is still queued now is in the replica's queue too, and leaves it in sight
    if (this.#isLive) {
      this.#lookForEnd(progress, false);
    }
    this.#dropIfOver(progress);
  }

  #look(progress: Progress, synced: boolean): void {
    if (progress.state === "queued") {
      this.#lookForStart(progress);
    }
    this.#lookForEnd(progress, synced);
    this.#dropIfOver(progress);
  }

  #dropIfOver(progress: Progress): void {
    if (progress.isOver) {
      this.#followed.delete(progress.prompt.message_id);
    }
  }

  #lookForStart(progress: Progress): void {
    const { message_id } = progress.prompt;
    const place = this.#replica.session?.queue?.indexOf(message_id) ?? -1;
    const turnId = this.#replica.message(message_id)?.turn_id;
    if (place >= 0) {
      progress.moved(place + 1);
    } else if (turnId !== undefined) {
      progress.took(turnId);
    } else if (!progress.isAsking) {
      progress.isAsking = true;
      this.#tools.exchange.start("prompt", progress.prompt, "repeatable", (answer) =>
        this.#learn(progress, answer),
      );
    }
  }

  #lookForEnd(progress: Progress, synced: boolean): void {
    const { turnId } = progress;
    const turn = this.#replica.turns.get(turnId ?? "");
    if (turn) {
      progress.follow(turn);
    } else if (turnId !== undefined && !progress.isAsking && (!progress.turn || synced)) {
      progress.isAsking = true;
      const params = { session_id: this.#replica.sessionId, turn_id: turnId };
      this.#tools.exchange.start("turn", params, "repeatable", (answer) => this.#askedTurn(progress, answer));
    }
  }

  #askedTurn(progress: Progress, answer: Answer<"turn">): void {
    progress.isAsking = false;
    if (this.#isClosed) {
      return;
    }
    if (isError(answer)) {
      progress.fail(answer);
    } else if (answer.turn) {
      progress.follow(answer.turn);
    }
    this.#dropIfOver(progress);
  }
}
