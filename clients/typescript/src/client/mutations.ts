/** Mutations: what changed in a session, in full, for those who follow it (SPEC 4.6). */
import type { Message, Part, SessionInfo, Turn } from "../protocol/model.js";

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
  | { readonly variant: "part"; readonly message_id: string; readonly part_id: string; readonly payload: Part }
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
