/**
 * Prompts that the server has not accepted yet, in order (SPEC 8).
 *
 * They go out one by one: the next is sent when the one before has its answer, so that a prompt which the
 * server puts off is never overtaken. The same `message_id` goes out however often it must be sent, so the
 * server takes it once.
 */
import type { PromptParams } from "../protocol/calls.js";
import { outboxFull } from "./errors.js";

/** The waiting prompts of one session, at most `limit`, the one on its way included. */
export class Outbox {
  readonly #sessionId: string;
  readonly #limit: number;
  /** In order; a new list after each change. */
  waiting: readonly PromptParams[] = [];
  #isSending = false;

  constructor(
    sessionId: string,
    limit: number,
  ) {
    this.#sessionId = sessionId;
    this.#limit = limit;
  }

  /** Keep a prompt. @throws MidstreamError `outbox_full` */
  add(prompt: PromptParams): void {
    if (this.waiting.length >= this.#limit) {
      throw outboxFull(this.#sessionId, this.#limit);
    }
    this.waiting = [...this.waiting, prompt];
  }

  /** Return the prompt to be sent now, or undefined while one is on its way or none waits. */
  take(): PromptParams | undefined {
    const prompt = this.#isSending ? undefined : this.waiting[0];
    this.#isSending ||= prompt !== undefined;
    return prompt;
  }

  /** Forget the prompt that was on its way: the server accepted or refused it. */
  answered(): void {
    this.waiting = this.waiting.slice(1);
    this.#isSending = false;
  }

  /** Take back a prompt that was not sent yet; false where it was, or is not here. */
  withdraw(messageId: string): boolean {
    const kept = this.waiting.filter(
      (prompt, at) => prompt.message_id !== messageId || (at === 0 && this.#isSending),
    );
    const isGone = kept.length < this.waiting.length;
    if (isGone) {
      this.waiting = kept;
    }
    return isGone;
  }
}
