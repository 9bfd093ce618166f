/** Where a client keeps, over a reload, what it last showed and what is not sent yet (SPEC 4.4, rule 18). */
import type { PromptParams } from "../protocol/calls.js";
import type { Replica, SavedReplica } from "../protocol/merge.js";
import type { PromptKeeper } from "./prompts.js";

/** What was kept of a session. */
export interface Kept {
  readonly replica?: SavedReplica;
  readonly prompts: readonly PromptParams[];
}

/** Keeps one session. It never fails: what it cannot keep, a reload loads from the server. */
export interface Keeper extends PromptKeeper {
  load(): Promise<Kept>;
  /** Keep a prompt; `at` gives its place among the others. Resolves when it is kept. */
  keepPrompt(prompt: PromptParams, at: number): Promise<void>;
  /** Keep the replica as it is now, or the newest of its messages. */
  keepReplica(replica: Replica): void;
  /** Forget the session: it was deleted, or may not be seen any more. */
  forget(prompts: readonly PromptParams[]): void;
}

/** Makes keepers; `keepIn` makes one of a map from text to data, which is all that a platform must have. */
export interface Store {
  keeper(sessionId: string, includeInternal: boolean, onTrouble: (error: unknown) => void): Keeper;
}
