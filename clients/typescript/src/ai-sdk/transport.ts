/** A transport for the AI SDK's `useChat`: a chat is a session, and an answer is a turn. */
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import type { Client, SessionOptions } from "../client/client.js";
import type { Session } from "../client/session.js";
import type { Delivery } from "../protocol/calls.js";
import { MidstreamError } from "../protocol/errors.js";
import type { Message } from "../protocol/model.js";
import { sharedSession } from "../react/shared_session.js";
import { isTool } from "./chunks.js";
import { mappedParts, toUserParts } from "./messages.js";
import { Answer, answersOf, type Told, waits } from "./turn_stream.js";

type Sent<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Resumed<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0];
type Chunks = ReadableStream<UIMessageChunk>;

/** A chat is made where there is none: the AI SDK makes up ids of its own. */
export const CREATE: SessionOptions = { create: true };

/** Why an answer is not made again, nor a question written anew, in place of the old one. */
export const keepsHistory = (what: string): MidstreamError =>
  new MidstreamError(
    "unsupported",
    `${what} would replace what was said, and a session keeps it. Fork the session up to the message ` +
      "(session.fork({ messageId })) and go on in the copy, or send another message.",
  );

/**
 * Speaks to a midstream server for `useChat({ id, transport })`: the chat's id is the session's. A message is
 * sent once under the id that the chat gives it, over lost connections too. When the chat's own `stop` is
 * called, or its page goes, reading ends and the turn goes on: `useChat` does not say which of both it was.
 * `useSyncedChat` has a `stop` that stops the turn.
 */
export class MidstreamChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A running answer is told from its beginning: the AI SDK cannot go on with text that it has. */
  readonly resumeStreamIsReplay = true;
  readonly #client: Client;
  readonly #options: SessionOptions;
  readonly #told = new WeakMap<Session, Told>();

  /** `session` is how sessions are opened. */
  constructor(client: Client, options: { readonly session?: SessionOptions } = {}) {
    this.#client = client;
    this.#options = options.session ?? CREATE;
  }

  /** Give the session the last message, or the answers about tools in it, and stream what is said to that. */
  async sendMessages({ chatId, trigger, messageId, messages, abortSignal, body }: Sent<M>): Promise<Chunks> {
    if (trigger === "regenerate-message") {
      throw keepsHistory("Another answer");
    }
    const last = messages.at(-1);
    const { session, release } = this.#hold(chatId);
    try {
      if (last?.role === "user") {
        if (messageId !== undefined) {
          throw keepsHistory("Another text of the question");
        }
        return await this.#prompt(session, last, { body, abortSignal, release });
      }
      const given = messages.find(({ id }) => id === messageId) ?? last;
      const answered = session.message(given?.id ?? "");
      if (!answered || !(await respond(session, given))) {
        throw new MidstreamError("unsupported", "There is nothing to send: neither a message nor an answer.");
      }
      return this.#goOn(session, answered, abortSignal, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Stream the answer that is being written; null where none is. Waits until the session is live. */
  async reconnectToStream({ chatId, abortSignal }: Resumed<M>): Promise<Chunks | null> {
    const { session, release } = this.#hold(chatId);
    try {
      await session.until(() => session.state === "live" || abortSignal?.aborted);
      const isIdle = abortSignal?.aborted || waits(session.turn, session.messages);
      const stream = isIdle ? undefined : this.#running(session, abortSignal, release);
      if (!stream) {
        release();
      }
      return stream ?? null;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Keep the session open for as long as something is read of it. */
  #hold(chatId: string): { readonly session: Session; readonly release: () => void } {
    const shared = sharedSession(this.#client, chatId, this.#options);
    const release = shared.subscribe(() => undefined);
    const { session, error } = shared.read();
    if (error) {
      release();
      throw error;
    }
    return { session, release };
  }

  async #prompt(
    session: Session,
    message: M,
    given: {
      readonly body: object | undefined;
      readonly abortSignal: AbortSignal | undefined;
      release(): void;
    },
  ): Promise<Chunks> {
    const { delivery } = (given.body ?? {}) as { readonly delivery?: Delivery };
    const prompted = () => session.message(message.id);
    const giving = session.prompt(toUserParts(message), {
      messageId: message.id,
      ...(delivery && { delivery }),
    });
    const done = keepInHand(session, message.id);
    try {
      const handle = await giving;
      return new Answer(session, {
        handle,
        turnId: () => prompted()?.turn_id,
        after: () => prompted()?.sequence,
        signal: given.abortSignal,
        onEnd: (told) => this.#ended(session, told, given.release),
      }).stream;
    } finally {
      done();
    }
  }

  /** The answer that is being written, or the next one of the turn, from its beginning. */
  #running(session: Session, signal: AbortSignal | undefined, release: () => void): Chunks | undefined {
    const { turn, messages } = session;
    if (!turn) {
      return undefined;
    }
    const last = messages.filter(({ role, turn_id }) => role === "agent" && turn_id === turn.turn_id).at(-1);
    const after = (last?.sequence ?? 0) - (last?.state === "streaming" ? 1 : 0);
    return new Answer(session, {
      turnId: () => turn.turn_id,
      after: () => after,
      signal,
      onEnd: (told) => this.#ended(session, told, release),
    }).stream;
  }

  /** The rest of an answer that the chat has the beginning of. */
  #goOn(session: Session, message: Message, signal: AbortSignal | undefined, release: () => void): Chunks {
    const { message_id: messageId, turn_id, sequence } = message;
    const told = this.#told.get(session);
    return new Answer(session, {
      turnId: () => turn_id,
      after: () => sequence - 1,
      // what it was told last; after a reload it has what the session showed
      told: told?.messageId === messageId ? told : { messageId, parts: mappedParts(message) },
      signal,
      onEnd: (now) => this.#ended(session, now, release),
    }).stream;
  }

  #ended(session: Session, told: Told | undefined, release: () => void): void {
    if (told) {
      this.#told.set(session, told);
    }
    release();
  }
}

const inHand = new WeakMap<Session, Set<string>>();

/** The ids of messages that are just being given to the session. */
export const isInHand = (session: Session, messageId: string): boolean =>
  inHand.get(session)?.has(messageId) ||
  answersOf(session).some(({ options }) => options.handle?.messageId === messageId);

function keepInHand(session: Session, messageId: string): () => void {
  const all = inHand.get(session) ?? new Set();
  inHand.set(session, all.add(messageId));
  return () => all.delete(messageId);
}

/** Answer what the chat has answers for; false where there are none. */
async function respond(session: Session, message: UIMessage | undefined): Promise<boolean> {
  let isAnswer = false;
  for (const { state, approval } of (message?.parts ?? []).filter(isTool)) {
    if (state === "approval-responded" && approval) {
      isAnswer = true;
      await answerApproval(session, approval.id, approval.approved, approval.reason);
    }
  }
  return isAnswer;
}

/** Answer an approval. Where somebody else was first, theirs is the answer, and the session shows it. */
export async function answerApproval(
  session: Session,
  id: string,
  approved: boolean,
  reason?: string,
): Promise<void> {
  const decision = approved ? "approved" : "denied";
  try {
    await session.respond(id, { kind: "approval", decision, ...(reason !== undefined && { reason }) });
  } catch (error) {
    if (!(error instanceof MidstreamError && error.code === "interaction_closed")) {
      throw error;
    }
  }
}
