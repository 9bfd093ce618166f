/** What a replica says after it was given a frame or a page (SPEC 4). */

/**
 * `applied`: as a whole. `reset`: likewise, and everything was replaced. `ignored`: it said nothing new.
 * `gap`: something is missing, and the content did not change; subscribe with the cursor. `restart`:
 * likewise, but only a `reset` can help.
 */
export type Outcome = "applied" | "reset" | "ignored" | "gap" | "restart";

/** What came of a page. `again`: it does not fit the stream's place any more, read it again. */
export type PageOutcome = "applied" | "again" | "ignored";

/** Thrown within the merge law by what cannot be applied. */
export class Misfit {
  readonly outcome: "gap" | "restart";
  constructor(outcome: "gap" | "restart") {
    this.outcome = outcome;
  }
}

/** What cannot fit says that the replica is wrong (SPEC 4.4, rule 9). */
export function must(fits: unknown, outcome: "gap" | "restart" = "restart"): asserts fits {
  if (!fits) {
    throw new Misfit(outcome);
  }
}
