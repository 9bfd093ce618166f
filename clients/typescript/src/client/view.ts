/** What is read of a session: the replica, by the names that an application uses. */
import type { Cursor } from "../protocol/calls.js";
import type { Replica } from "../protocol/merge.js";
import type { Message, SessionInfo, Turn } from "../protocol/model.js";

const NO_QUEUE: readonly string[] = [];

/** A replica to look at. It is never torn, and what did not change stays the same object. */
export class SessionView {
  protected readonly replica: Replica;

  constructor(replica: Replica) {
    this.replica = replica;
  }

  /** The session's id: the one that it was opened by, but where the server chose another (`create`). */
  get sessionId(): string {
    return this.replica.sessionId;
  }

  /** Whether the agent's internal messages are shown. */
  get includeInternal(): boolean {
    return this.replica.includeInternal;
  }

  /** The messages of the window, whole, ascending: the same list until something changes. */
  get messages(): readonly Message[] {
    return this.replica.messages();
  }

  /** One message, whole; undefined where it is not among `messages`. */
  message(messageId: string): Message | undefined {
    return this.replica.message(messageId);
  }

  /** Whether there are messages before the first of `messages`; see `loadEarlier`. */
  get hasEarlier(): boolean {
    return this.replica.hasMore;
  }

  /** The session's own state: title, metadata, counts; undefined before anything was known of it. */
  get info(): SessionInfo | undefined {
    return this.replica.session;
  }

  /** The turn that runs now. */
  get turn(): Turn | undefined {
    return this.replica.runningTurn;
  }

  /** The known turns by id: those of the messages, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn> {
    return this.replica.turns;
  }

  /** The ids of accepted input that is not in a message yet, in order. */
  get queue(): readonly string[] {
    return this.info?.queue ?? NO_QUEUE;
  }

  /** The version of the session that the replica shows. */
  get version(): number {
    return this.replica.version;
  }

  /** How far the replica has come; undefined before the first sync. */
  get cursor(): Cursor | undefined {
    return this.replica.cursor();
  }
}
