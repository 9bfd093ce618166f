/** One answer of a turn as a stream of chunks, for as long as it is written. */
import type { UIMessageChunk } from "ai";
import type { Session } from "../client/session.js";
import type { TurnHandle } from "../client/turns.js";
import type { Message, Turn } from "../protocol/model.js";
import { type Shown, withNextFrame, withoutFrame } from "../react/frames.js";
import { chunksTo } from "./chunks.js";
import { type Mapped, mappedParts, metadataOf } from "./messages.js";

/** What of a message was told. */
export interface Told {
  readonly messageId: string;
  readonly parts: readonly Mapped[];
}

/** Which answer is streamed, and to whom. */
export interface AnswerOptions {
  /** The turn; undefined while none has the prompt. */
  turnId(): string | undefined;
  /** The answer is the first message of the agent's, in this turn, above this sequence. */
  after(): number | undefined;
  /** The prompt that is answered. */
  readonly handle?: TurnHandle;
  /** What the reader has of it. */
  readonly told?: Told;
  readonly signal: AbortSignal | undefined;
  onEnd(told: Told | undefined): void;
}

const streams = new WeakMap<Session, Set<Answer>>();

/** The answers of a session that are being streamed. */
export const answersOf = (session: Session): readonly Answer[] => [...(streams.get(session) ?? [])];

/** Whether the turn does nothing until a person answers. */
export const waits = (turn: Turn | undefined, messages: readonly Message[]): boolean =>
  turn?.phase === "waiting-user" &&
  messages.some(
    ({ turn_id, parts }) =>
      turn_id === turn.turn_id &&
      parts.some((part) => part.type === "interaction" && part.status === "pending"),
  );

/**
 * An answer that is streamed, with what is new once a frame. It ends with the message: where the turn goes
 * on in another one, that is another answer. It ends, too, when the turn waits for a person, as the AI SDK
 * has it. That the reader goes ends nothing at the server.
 */
export class Answer implements Shown {
  readonly stream: ReadableStream<UIMessageChunk>;
  readonly options: AnswerOptions;
  readonly #session: Session;
  #controller: ReadableStreamDefaultController<UIMessageChunk> | undefined;
  #told: Told | undefined;
  #isStarted = false;
  readonly #ends: (() => void)[] = [];

  constructor(session: Session, options: AnswerOptions) {
    this.#session = session;
    this.options = options;
    this.#told = options.told;
    const all = streams.get(session) ?? new Set();
    streams.set(session, all.add(this));
    this.#ends.push(() => all.delete(this));
    this.stream = new ReadableStream({
      start: (controller) => this.#start(controller),
      cancel: () => this.#end(() => undefined),
    });
  }

  /** Whether the message is, or will be, the one that is streamed. */
  covers(message: Message): boolean {
    const after = this.options.after();
    return this.#told
      ? message.message_id === this.#told.messageId
      : after !== undefined && this.#isAnswer(message, after);
  }

  refresh(): boolean {
    this.#step();
    return false;
  }

  tell(): void {
    // nobody waits for it: what is new went into the stream
  }

  #start(controller: ReadableStreamDefaultController<UIMessageChunk>): void {
    const { signal, handle } = this.options;
    this.#controller = controller;
    const leave = () => this.#end(() => controller.close());
    signal?.addEventListener("abort", leave);
    const later = () => withNextFrame(this);
    const ignore = [this.#session.subscribe(later), handle?.subscribe(later)];
    this.#ends.push(
      () => signal?.removeEventListener("abort", leave),
      () => withoutFrame(this),
      ...ignore.flatMap((one) => one ?? []),
    );
    if (signal?.aborted) {
      leave();
    } else {
      this.#step();
    }
  }

  #isAnswer({ role, turn_id, sequence }: Message, after: number): boolean {
    return role === "agent" && turn_id === this.options.turnId() && sequence > after;
  }

  #answer(): Message | undefined {
    const after = this.options.after();
    const { messages } = this.#session;
    return this.#told
      ? this.#session.message(this.#told.messageId)
      : after === undefined
        ? undefined
        : messages.find((message) => this.#isAnswer(message, after));
  }

  #step(): void {
    const { handle } = this.options;
    const message = this.#answer();
    const isTold = !message || this.#tell(message);
    const turn = this.#session.turns.get(this.options.turnId() ?? "");
    if (handle?.state === "cancelled") {
      this.#finish({ type: "abort", reason: "cancelled" });
    } else if (handle?.error) {
      this.#fail(handle.error);
    } else if (this.#session.state === "closed") {
      this.#fail(this.#session.error ?? new Error(`Session ${this.#session.sessionId} was closed here.`));
    } else if (turn && turn.state !== "running") {
      this.#over(turn);
    } else if (!isTold || message?.state === "done" || (handle && isOver(handle))) {
      this.#finish({ type: "finish", finishReason: "other" });
    } else if (waits(turn, message ? [message] : []) && !isGrowing(message)) {
      this.#finish({ type: "finish", finishReason: "tool-calls" });
    }
  }

  /** Tell what is new of the message; false where that cannot be told any more. */
  #tell(message: Message): boolean {
    const { message_id: messageId } = message;
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#controller?.enqueue({ type: "start", messageId, messageMetadata: metadataOf(message) });
    }
    const parts = mappedParts(message);
    const chunks = chunksTo(this.#told?.parts ?? [], parts);
    for (const chunk of chunks ?? []) {
      this.#controller?.enqueue(chunk);
    }
    if (chunks) {
      this.#told = { messageId, parts };
    }
    return chunks !== undefined;
  }

  /** The turn is over. */
  #over({ state, error }: Turn): void {
    if (state === "failed") {
      this.#finish({ type: "error", errorText: error?.message ?? "The turn failed." });
    } else if (state === "stopped") {
      this.#finish({ type: "abort", reason: "stopped" });
    } else {
      this.#finish({ type: "finish", finishReason: "stop" });
    }
  }

  #finish(last: UIMessageChunk): void {
    this.#end((controller) => {
      controller.enqueue(last);
      controller.close();
    });
  }

  #fail(error: Error): void {
    this.#end((controller) => controller.error(error));
  }

  /** End it; once. */
  #end(last: (controller: ReadableStreamDefaultController<UIMessageChunk>) => void): void {
    const controller = this.#controller;
    if (controller) {
      this.#controller = undefined;
      last(controller);
      for (const end of this.#ends.splice(0)) {
        end();
      }
      this.options.onEnd(this.#told);
    }
  }
}

const isOver = ({ state }: TurnHandle) => ["completed", "failed", "stopped", "refused"].includes(state);

const isGrowing = (message: Message | undefined): boolean =>
  message?.parts.some(
    (part) => (part.type === "text" || part.type === "reasoning") && part.state === "streaming",
  ) ?? false;
