/** What a replica says after it was given a frame or a page (SPEC 4). */

/**
 * `applied`: as a whole. `reset`: likewise, and everything was replaced. `ignored`: it said nothing new.
 * `gap`: something is missing, and the content did not change; subscribe with the cursor. `restart`:
 * likewise, but only a `reset` can help.
 */
export type Outcome = "applied" | "reset" | "ignored" | "gap" | "restart";

/** What came of a page. `again`: it does not fit the stream's place any more, read it again. */
export type PageOutcome = "applied" | "again" | "ignored";

/** Thrown within the merge law by what cannot be applied: the outcome itself. */
export type Misfit = "gap" | "restart";

export const isMisfit = (thrown: unknown): thrown is Misfit => thrown === "gap" || thrown === "restart";

/** What cannot fit says that the replica is wrong (SPEC 4.4, rule 9). */
export function must(fits: unknown, outcome: Misfit = "restart"): asserts fits {
  if (!fits) {
    throw outcome;
  }
}
