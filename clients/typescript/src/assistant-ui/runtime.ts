/** A session as the runtime of assistant-ui. */
import {
  type AppendMessage,
  type AssistantRuntime,
  type ExternalStoreAdapter,
  type ExternalStoreThreadListAdapter,
  type ExternalThreadQueueAdapter,
  type ThreadMessageLike,
  useExternalStoreRuntime,
} from "@assistant-ui/react";
import { useEffect, useMemo, useRef } from "react";
import type { Client, SessionOptions } from "../client/client.js";
import type { Session } from "../client/session.js";
import { MidstreamError } from "../protocol/errors.js";
import type { InteractionPart, UserPart } from "../protocol/model.js";
import { useClient } from "../react/provider.js";
import { useSession } from "../react/session.js";
import type { OpenSession } from "../react/shared_session.js";
import { toAnswers, toThreadMessages, toUserParts } from "./messages.js";

type Adapter = ExternalStoreAdapter<ThreadMessageLike>;
type Responding = Parameters<NonNullable<Adapter["onRespondToToolApproval"]>>[0];

export interface RuntimeOptions {
  /** How the session is opened; it counts for the first who asks. */
  readonly session?: SessionOptions;
  /**
   * Show another session. Where it is given, messages can be edited and answers made again: a session keeps
   * what was said, so either goes on in a copy, which is shown then.
   */
  readonly onSwitchToSession?: (sessionId: string) => void;
  /** The list of sessions: see `useMidstreamThreadList`. */
  readonly threadList?: ExternalStoreThreadListAdapter;
  /** assistant-ui's own adapters: for attachments, speech, feedback. */
  readonly adapters?: Omit<NonNullable<Adapter["adapters"]>, "threadList">;
  /** Told where the server refuses a message. Without it that is an error that nobody handled. */
  readonly onError?: (error: unknown) => void;
}

const CREATE: SessionOptions = { create: true };

/**
 * The runtime of a session, for `AssistantRuntimeProvider`. Messages, approvals and questions are the
 * session's, whoever wrote or answered them; input is taken while a turn runs. `cancel` stops the turn;
 * unmounting stops nothing. Tools run at the agent: results of tools cannot be added here.
 */
export function useMidstreamRuntime(sessionId: string, options: RuntimeOptions = {}): AssistantRuntime {
  const client = useClient();
  const shown = useSession(sessionId, options.session ?? CREATE);
  const { session, messages, turns, pending, turn, hasEarlier, state, info } = shown;
  const { onSwitchToSession, threadList } = options;
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  const likes = useMemo(() => toThreadMessages(messages, turns, pending), [messages, turns, pending]);
  const actions = useMemo(
    () => sessionActions(session, (error) => (latest.current.onError ?? raise)(error)),
    [session],
  );
  const canFork = onSwitchToSession !== undefined;
  const forks = useMemo(
    () => (canFork ? forkActions(client, session, (copy) => latest.current.onSwitchToSession?.(copy)) : {}),
    [canFork, client, session],
  );
  return useExternalStoreRuntime<ThreadMessageLike>({
    messages: likes,
    convertMessage: asIs,
    isRunning: turn !== undefined,
    isLoading: info === undefined && (state === "connecting" || state === "syncing"),
    isDisabled: state === "closed",
    hasEarlier,
    ...actions,
    ...forks,
    queue: queueOf(shown, actions.onNew),
    adapters: { ...options.adapters, threadList: { threadId: sessionId, ...threadList } },
  });
}

const asIs = (message: ThreadMessageLike) => message;

const raise = (error: unknown): void => void Promise.reject(error);

/** What was typed here, by the ids of prompts: a queue names only these. */
const typed = new WeakMap<Session, Map<string, AppendMessage>>();

async function give(
  session: Session,
  message: AppendMessage,
  onError: (error: unknown) => void,
): Promise<void> {
  const handle = await session.prompt(toUserParts(message));
  typed.set(session, (typed.get(session) ?? new Map()).set(handle.messageId, message));
  handle.accepted().catch((error: unknown) => {
    if (handle.state === "refused") {
      onError(error); // else it was taken back, or the client was closed
    }
  });
}

/** What of the runtime is done in the session itself. */
function sessionActions(session: Session, onError: (error: unknown) => void) {
  return {
    onNew: (message: AppendMessage): Promise<void> => give(session, message, onError),
    onCancel: async (): Promise<void> => {
      const [prompt] = session.pending;
      await (session.turn || !prompt ? session.stop() : session.handle(prompt.message_id)?.stop());
    },
    onLoadEarlier: async (): Promise<void> => {
      await session.loadEarlier();
    },
    onRespondToToolApproval: (answer: Responding): Promise<void> => respond(session, answer),
  };
}

/** Answer what is asked. Where somebody else was first, theirs is the answer, and the session shows it. */
async function respond(session: Session, given: Responding): Promise<void> {
  const { approvalId, approved, answers, reason } = given;
  const asked = session.messages
    .flatMap(({ parts }) => parts)
    .find(
      (part): part is InteractionPart => part.type === "interaction" && part.interaction_id === approvalId,
    );
  try {
    if (asked?.interaction_type !== "question") {
      await (approved ? session.approve(approvalId, reason) : session.deny(approvalId, reason));
    } else if (answers) {
      await session.answer(approvalId, toAnswers(asked.request.questions ?? [], answers));
    } else {
      throw new MidstreamError(
        "unsupported",
        "A question has no answer but those it asks for: give `answers`, or stop the turn.",
      );
    }
  } catch (error) {
    if (!(error instanceof MidstreamError && error.code === "interaction_closed")) {
      throw error;
    }
  }
}

/** What goes on in a copy of the session: a question written anew, and an answer made again. */
function forkActions(client: Client, session: Session, show: (sessionId: string) => void) {
  /** Copy what was said before a message, ask in the copy, and show that. */
  const ask = async (before: string | null, parts: readonly UserPart[]) => {
    const copy = before
      ? await session.fork({ messageId: before })
      : await client.session((await client.create(titleOf(session))).session_id);
    await copy.prompt(parts);
    show(copy.sessionId);
  };
  return {
    onEdit: (message: AppendMessage): Promise<void> => ask(message.parentId, toUserParts(message)),
    onReload: async (questionId: string | null): Promise<void> => {
      const at = session.messages.findIndex(({ message_id }) => message_id === questionId);
      const question = session.messages[at];
      if (question?.role !== "user") {
        throw new MidstreamError("unsupported", "There is no question here to ask again: load it first.");
      }
      const before = session.messages[at - 1]?.message_id ?? null;
      if (before === null && session.hasEarlier) {
        throw new MidstreamError(
          "unsupported",
          "What stands before the question is not loaded: load it first.",
        );
      }
      await ask(before, question.parts.map(asInput));
    },
  };
}

const titleOf = ({ info }: Session) => (info?.title === undefined ? {} : { title: info.title });

/** A part of a message as input. */
function asInput(part: { readonly type: string }): UserPart {
  const { part_id: _, sequence: __, ...given } = part as UserPart & { readonly sequence?: number };
  return given as UserPart;
}

/** What waits for its turn. The texts of others' are not known here. */
function queueOf(
  { session, queue }: OpenSession,
  onNew: (message: AppendMessage) => Promise<void>,
): ExternalThreadQueueAdapter {
  const send = (message: AppendMessage) => void onNew(message).catch(raise);
  const item = (id: string) => {
    const content = typed.get(session)?.get(id)?.content ?? [];
    const parts = content.flatMap((part) => (part.type === "text" ? [part] : []));
    return { id, parts, prompt: parts.map(({ text }) => text).join("") };
  };
  return {
    items: queue.map(item),
    steerItems: [],
    enqueue: send,
    steer: send,
    move: () => undefined, // the order is the server's
    edit: (id, message) => void session.cancelInput(id).then(() => send(message), raise),
    remove: (id) => void session.cancelInput(id).catch(raise),
  };
}
