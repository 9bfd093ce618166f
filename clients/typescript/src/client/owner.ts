/** What a session and its client have of each other. */
import type { Delta } from "../protocol/frames.js";
import type { Session } from "./session.js";
import type { Keeper } from "./store.js";

/** What a session has of its client. */
export interface Owner {
  /** Who keeps the session of this id. */
  keeper(sessionId: string): Keeper | undefined;
  readonly outboxLimit: number;
  /** Open a copy of the session. */
  copy(sessionId: string): Promise<Session>;
  /** Let the session be found by this id, too; false where another has it. */
  claim(sessionId: string): boolean;
  onClosed(): void;
}

/** A delta, or what else changed; or everything was replaced, earlier messages joined, the session closed. */
export type SessionNews = Delta | "changed" | "reset" | "loaded" | "closed";
