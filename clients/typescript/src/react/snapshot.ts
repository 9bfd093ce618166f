/** A session as components see it: what was true at one moment, all of it. */
import { Client } from "../client/client.js";
import { systemEnvironment } from "../client/environment.js";
import type { Session } from "../client/session.js";
import type { SessionState } from "../client/subscription.js";
import type { PromptParams } from "../protocol/calls.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { InteractionPart, Message, SessionInfo, Turn } from "../protocol/model.js";
import { Paced, unlessSame } from "./paced.js";

/** A question that waits for a person, and where it stands. */
export interface Asked {
  readonly message: Message;
  readonly part: InteractionPart;
}

/**
 * A session at one moment. What did not change since the snapshot before is the same object, and so is the
 * snapshot itself where nothing did.
 */
export interface SessionSnapshot {
  /** The session, to act on: `prompt`, `stop`, `approve`, `fork`, … What it reads as may already be newer. */
  readonly session: Session;
  readonly messages: readonly Message[];
  /** The turn that runs now. */
  readonly turn: Turn | undefined;
  readonly turns: ReadonlyMap<string, Turn>;
  /** The ids of accepted input that is not in a message yet, in order. */
  readonly queue: readonly string[];
  /** Prompts that the server has not accepted yet, in order. */
  readonly pending: readonly PromptParams[];
  /** What waits for a person's answer in `messages`; those that were answered, anywhere, are not in it. */
  readonly interactions: readonly Asked[];
  readonly info: SessionInfo | undefined;
  readonly state: SessionState;
  readonly hasEarlier: boolean;
  /** What last ended the connection or an attempt, in words. */
  readonly problem: string | undefined;
  /** Why the session is closed, where nobody here closed it: `not_found`, deleted, … */
  readonly error: MidstreamError | undefined;
  readonly version: number;
  /** One of `messages`. */
  message(messageId: string): Message | undefined;
}

const NONE: readonly never[] = [];
const shown = new WeakMap<Session, Paced<SessionSnapshot>>();
const askedIn = new WeakMap<Message, readonly Asked[]>();

/** The snapshots of a session: the same for all who show it. */
export function snapshotsOf(session: Session): Paced<SessionSnapshot> {
  let found = shown.get(session);
  if (!found) {
    found = new Paced(
      (listener) => session.subscribe(listener),
      (before) => look(session, before),
    );
    shown.set(session, found);
  }
  return found;
}

function look(session: Session, before: SessionSnapshot | undefined): SessionSnapshot {
  const { messages, turn, queue, pending, info, state, hasEarlier, problem, error, version } = session;
  const isSameList = before?.messages === messages;
  return unlessSame(before, {
    session,
    messages,
    turn,
    turns: sameMap(before?.turns, session.turns),
    queue,
    pending,
    interactions: isSameList && before ? before.interactions : waiting(session, before?.interactions),
    info,
    state,
    hasEarlier,
    problem,
    error,
    version,
    message: isSameList && before ? before.message : finder(messages),
  });
}

/** Where a message is found by its id; the index is made when it is first needed. */
function finder(messages: readonly Message[]): SessionSnapshot["message"] {
  let index: Map<string, Message> | undefined;
  return (messageId) => {
    index ??= new Map(messages.map((message) => [message.message_id, message]));
    return index.get(messageId);
  };
}

/** The interactions that are pending. Messages that did not change are not looked through again. */
function waiting(session: Session, before: readonly Asked[] = NONE): readonly Asked[] {
  if (!session.info?.pending_interactions) {
    return NONE;
  }
  const found = session.messages.flatMap(askedBy);
  const isSame = found.length === before.length && found.every((one, at) => one === before[at]);
  return isSame ? before : found;
}

function askedBy(message: Message): readonly Asked[] {
  let asked = askedIn.get(message);
  if (!asked) {
    const pending = message.parts.filter(
      (part): part is InteractionPart => part.type === "interaction" && part.status === "pending",
    );
    asked = pending.length ? pending.map((part) => ({ message, part })) : NONE;
    askedIn.set(message, asked);
  }
  return asked;
}

/** A copy of the map, or the copy before where it has the same in it. */
function sameMap<K, V>(before: ReadonlyMap<K, V> | undefined, now: ReadonlyMap<K, V>): ReadonlyMap<K, V> {
  if (before?.size === now.size && [...now].every(([key, value]) => before.get(key) === value)) {
    return before;
  }
  return new Map(now);
}

/** What is shown before anything is known: on a server that renders the page, and while a page takes that over. */
export const blank = (session: Session): SessionSnapshot => ({
  session,
  messages: NONE,
  turn: undefined,
  turns: new Map(),
  queue: NONE,
  pending: NONE,
  interactions: NONE,
  info: undefined,
  state: "connecting",
  hasEarlier: false,
  problem: undefined,
  error: undefined,
  version: 0,
  message: () => undefined,
});

/** A session that never connects and never times out, for where there is nothing to connect to. */
export function stillSession(sessionId: string): Session {
  const nothing = () => undefined;
  const environment = {
    ...systemEnvironment(),
    later: () => nothing,
    socket: () => ({
      binaryType: "",
      protocol: "",
      onopen: null,
      onmessage: null,
      onclose: null,
      onerror: null,
      send: nothing,
      close: nothing,
    }),
  };
  return new Client("ws://nowhere", { environment, encoding: "json" }).open(sessionId);
}
