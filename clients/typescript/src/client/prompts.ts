/** The prompts of one session: sent once and in order, and followed until their turns end (SPEC 8). */
import type { PromptParams, PromptResult } from "../protocol/calls.js";
import { canonical } from "../protocol/digest.js";
import { MidstreamError } from "../protocol/errors.js";
import type { Replica } from "../protocol/merge.js";
import type { Value } from "../protocol/model.js";
import { type Answer, isError } from "./calls.js";
import type { Environment } from "./environment.js";
import type { Exchange } from "./exchange.js";
import { Outbox } from "./outbox.js";
import { Progress } from "./turns.js";

/** Who keeps prompts over a reload until the server has them. */
export interface PromptKeeper {
  /** Forget a prompt: the server accepted or refused it, or it was taken back. */
  dropPrompt(messageId: string): void;
}

const REPEATABLE = { repeatable: true };

/**
 * Sends the prompts of a session, and learns what becomes of them: from the replica where it can, and where
 * that cannot tell (the input left the queue unseen, the turn is not among those it holds) by asking.
 */
export class Prompts {
  readonly #replica: Replica;
  readonly #exchange: Exchange;
  readonly #keeper: PromptKeeper;
  readonly #later: Environment["later"];
  readonly #onChange: () => void;
  readonly #outbox: Outbox;
  readonly #followed = new Map<string, Progress>();
  #isLive = false;
  #isClosed = false;

  constructor(
    replica: Replica,
    exchange: Exchange,
    keeper: PromptKeeper,
    later: Environment["later"],
    onChange: () => void,
    outboxLimit: number,
  ) {
    this.#replica = replica;
    this.#exchange = exchange;
    this.#keeper = keeper;
    this.#later = later;
    this.#onChange = onChange;
    this.#outbox = new Outbox(replica.sessionId, outboxLimit);
  }

  /** Those that the server has not accepted yet, in order; the same list until something changes. */
  get waiting(): readonly PromptParams[] {
    return this.#outbox.waiting;
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
      if (canonical(known.prompt.parts as unknown as Value) !== canonical(prompt.parts as unknown as Value)) {
        const text = `Prompt ${message_id} was made with other content. Give a new message_id.`;
        throw new MidstreamError("idempotency_conflict", text, { field: "message_id", id: message_id });
      }
      return known;
    }
    this.#outbox.add(prompt);
    const progress = new Progress(prompt, this.#later);
    this.#followed.set(message_id, progress);
    this.#onChange();
    return progress;
  }

  /** Send the next prompt, if it is its turn. */
  pump(): void {
    const prompt = this.#isClosed ? undefined : this.#outbox.take();
    const progress = prompt && this.#followed.get(prompt.message_id);
    if (prompt && progress) {
      this.#exchange.start("prompt", prompt, REPEATABLE, (answer) => this.#accepted(progress, answer));
    }
  }

  /** Take back a prompt that was never sent; undefined where that cannot be done here. */
  withdraw(message_id: string): PromptResult | undefined {
    if (!this.#outbox.withdraw(message_id)) {
      return undefined;
    }
    const result: PromptResult = { state: "cancelled", message_id };
    this.#followed.get(message_id)?.learn(result);
    this.#followed.delete(message_id);
    this.#keeper.dropPrompt(message_id);
    this.#onChange();
    return result;
  }

  /** Look into the replica for news of the prompts; `synced`: something may have been missed. */
  settle(isLive: boolean, synced: boolean): void {
    this.#isLive = isLive;
    if (isLive) {
      for (const progress of [...this.#followed.values()]) {
        this.#look(progress, synced);
      }
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
    this.#outbox.answered();
    this.#keeper.dropPrompt(progress.prompt.message_id);
    this.#learn(progress, answer);
    this.#onChange();
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
      progress.position = place + 1;
    } else if (turnId !== undefined) {
      progress.took(turnId);
    } else if (!progress.isAsking) {
      progress.isAsking = true;
      this.#exchange.start("prompt", progress.prompt, REPEATABLE, (answer) => this.#learn(progress, answer));
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
      this.#exchange.start("turn", params, REPEATABLE, (answer) => this.#askedTurn(progress, answer));
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
