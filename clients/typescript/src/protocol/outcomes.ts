/** What a replica says after it was given a frame: what came of it, and what changed (SPEC 4). */

/** One thing that changed. Those of a frame come in order: dropped, messages, turns, session. */
export type ReplicaChange =
  /** Text was added to the end of a part, and nothing else changed but the message's `updated_at`. */
  | {
      readonly kind: "appended";
      readonly message_id: string;
      readonly part_id: string;
      readonly sequence: number;
      readonly revision: number;
      readonly text: string;
    }
  /** A message is new, or its fields or some `parts` (their sequences) changed; `lost`: a part is gone. */
  | {
      readonly kind: "message";
      readonly message_id: string;
      readonly sequence: number;
      readonly revision: number;
      readonly isNew: boolean;
      readonly parts: readonly number[];
      readonly durable: boolean;
      readonly lost: boolean;
    }
  | { readonly kind: "turn"; readonly turn_id: string; readonly revision: number }
  | { readonly kind: "session"; readonly revision: number }
  /** Messages left the replica, because the session was cleared. */
  | { readonly kind: "dropped" }
  /** Everything was replaced; no other change is named beside it. */
  | { readonly kind: "reset" };

/**
 * `applied`: as a whole. `ignored`: it said nothing new. `gap`: something is missing, and the content did
 * not change; subscribe with the cursor. `restart`: likewise, but only a `reset` can help.
 */
export type Outcome =
  | { readonly kind: "applied"; readonly changes: readonly ReplicaChange[] }
  | { readonly kind: "ignored" }
  | Gap;

export interface Gap {
  readonly kind: "gap" | "restart";
  readonly reason: string;
}

/** What came of a page. `again`: it does not fit the stream's place any more, read it again. */
export type PageOutcome = "applied" | "again" | "ignored";

/** Thrown within the merge law by what cannot be applied. */
export class Misfit {
  constructor(readonly gap: Gap) {}
}

export const restart = (reason: string): Misfit => new Misfit({ kind: "restart", reason });
