/** Mutations: what changed in a session, in full, for those who follow it (SPEC 4.6). */
import type { Delta } from "../protocol/frames.js";
import type { Message, Part, SessionInfo, Turn } from "../protocol/model.js";
import type { Session } from "./session.js";
import { Stream } from "./streams.js";

/**
 * Why the messages are to be read again. `synced`: the replica was replaced as a whole. `cleared`: messages
 * were removed. `loaded`: earlier messages joined. `slow`: this reader did not keep up.
 */
export type ResetReason = "synced" | "cleared" | "loaded" | "slow";

/** What changed, and what it is now. */
export type Payload =
  /** The whole message: it is new, was committed, or lost a part. */
  | { readonly variant: "message"; readonly message_id: string; readonly payload: Message }
  /** A whole part that is new or changed and not committed yet. */
  | {
      readonly variant: "part";
      readonly message_id: string;
      readonly part_id: string;
      readonly payload: Part;
    }
  /** Text at the end of a part: of its `text`, or of a tool part's `input_text`. */
  | {
      readonly variant: "delta";
      readonly message_id: string;
      readonly part_id: string;
      readonly payload: { readonly text: string };
    }
  | { readonly variant: "turn"; readonly payload: Turn }
  | { readonly variant: "session"; readonly payload: SessionInfo }
  /** Read `session.messages` again. */
  | { readonly variant: "reset"; readonly payload: { readonly reason: ResetReason } };

export type Mutation = Payload & {
  /** `epoch:version`, and `:index` where one version changed several things. Unique in the session. */
  readonly mutation_id: string;
  readonly session_id: string;
  /** When it happened, in ms since the epoch by the server's clock. */
  readonly created_at: number;
  /** The version that made the payload what it is. */
  readonly revision: number;
};

/** A mutation without what all of a version share. */
type Told = Payload & { readonly created_at: number; readonly revision: number };

/** What of a session was told already. */
interface Seen {
  readonly messages: readonly Message[];
  readonly turns: ReadonlyMap<string, Turn>;
  readonly info: SessionInfo | undefined;
}

/**
 * All that changes in a session from now on, to read with `for await`. At most `limit` mutations wait: a
 * slower reader gets one of variant `reset` in their place, and reads `session.messages` again; so after a
 * sync that replaced the replica, after a clear, and when earlier messages were loaded. It ends when the
 * session closes, with its error if any.
 */
export function mutations(session: Session, limit = 10_000): Stream<Mutation> {
  let seen = look(session);
  const push = (told: readonly Told[], reason?: ResetReason) => {
    for (const [index, item] of told.entries()) {
      stream.push(asMutation(session, item, reason ?? (told.length > 1 ? index : undefined)));
    }
  };
  const stream = new Stream<Mutation>(
    limit,
    () => asMutation(session, reset(session, "slow"), "slow"),
    () => ignore(),
  );
  const ignore = session.onChanges((news) => {
    if (news === "closed") {
      stream.end(session.error);
    } else if (news === "loaded") {
      push([reset(session, news)], news);
    } else if (news === "reset") {
      push([reset(session, "synced")]);
    } else {
      push(news === "changed" ? differences(session, seen) : grown(session, news));
    }
    seen = look(session);
  });
  return stream;
}

const look = ({ messages, turns, info }: Session): Seen => ({ messages, turns: new Map(turns), info });

/** What a delta did; nothing where its message is not held. */
function grown(session: Session, { part_sequence, version, text }: Delta): Told[] {
  const message = [...session.messages].reverse().find(({ revision }) => revision === version);
  const part = message?.parts[(part_sequence ?? message.parts.length) - 1];
  return message && part ? [toldDelta(message, part, text)] : [];
}

/** What changed, in order: messages that are gone, messages, turns, the session. What is the same object did not. */
function differences(session: Session, seen: Seen): Told[] {
  const { messages, turns, info } = session;
  const before = new Map(seen.messages.map((message) => [message.message_id, message]));
  const first = seen.messages[0];
  const told: Told[] = first && !session.message(first.message_id) ? [reset(session, "cleared")] : [];
  for (const message of messages) {
    const old = before.get(message.message_id);
    if (old !== message) {
      told.push(...toldOfMessage(session, old, message));
    }
  }
  for (const turn of turns.values()) {
    if (seen.turns.get(turn.turn_id) !== turn) {
      const created_at = turn.finished_at ?? turn.phase_since;
      told.push({ variant: "turn", created_at, revision: turn.revision, payload: turn });
    }
  }
  if (info && info !== seen.info) {
    told.push({ variant: "session", created_at: info.updated_at, revision: info.revision, payload: info });
  }
  return told;
}

function toldOfMessage(session: Session, old: Message | undefined, message: Message): Told[] {
  const { message_id, revision, updated_at: created_at, parts } = message;
  const changed = parts.filter((part, at) => old?.parts[at] !== part);
  const isLost = old?.parts.some((part, at) => parts[at]?.part_id !== part.part_id);
  const isDurable = revision <= (session.cursor?.durable ?? 0);
  if (!old || isDurable || isLost || !changed.length) {
    return [{ variant: "message", created_at, revision, message_id, payload: message }];
  }
  return changed.map((part) => {
    const text = addedText(old.parts[part.sequence - 1], part);
    return text === undefined
      ? { variant: "part", created_at, revision, message_id, part_id: part.part_id, payload: part }
      : toldDelta(message, part, text);
  });
}

/** The text at the end of a part, where nothing else of it changed. */
function addedText(old: Part | undefined, part: Part): string | undefined {
  const field = part.type === "tool" ? "input_text" : "text";
  const text = (one: Part | undefined) =>
    String((one as { [name: string]: unknown } | undefined)?.[field] ?? "");
  const isSame = JSON.stringify({ ...old, [field]: "" }) === JSON.stringify({ ...part, [field]: "" });
  return isSame && text(part).startsWith(text(old)) ? text(part).slice(text(old).length) : undefined;
}

const toldDelta = (message: Message, { part_id }: Part, text: string): Told => ({
  variant: "delta",
  created_at: message.updated_at,
  revision: message.revision,
  message_id: message.message_id,
  part_id,
  payload: { text },
});

const reset = (session: Session, reason: ResetReason): Told => ({
  variant: "reset",
  created_at: session.info?.updated_at ?? 0,
  revision: session.version,
  payload: { reason },
});

/** A reset that no version made has an id that is not that of one: its reason is the `suffix`. */
function asMutation(session: Session, told: Told, suffix: string | number | undefined): Mutation {
  const place = [session.cursor?.epoch, session.version, suffix].filter((piece) => piece !== undefined);
  return { ...told, mutation_id: place.join(":"), session_id: session.sessionId };
}
