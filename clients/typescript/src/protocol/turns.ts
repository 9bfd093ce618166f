/** The turns that a replica holds: those of its messages, the running one, and the newest (SPEC 4.6). */
import type { Turn } from "./model.js";
import type { ReplicaChange } from "./outcomes.js";

/** Turns that are kept whether or not a message names them, so that a late handle finds its turn's end. */
const NEWEST = 32;

export class Turns {
  readonly #held = new Map<string, Turn>();

  constructor(turns: Iterable<Turn> = []) {
    this.take(turns);
  }

  /** The turns by id; a view. */
  get byId(): ReadonlyMap<string, Turn> {
    return this.#held;
  }

  /** Keep what is newer than what is held, and return what changed. */
  take(turns: Iterable<Turn> = []): ReplicaChange[] {
    const changes: ReplicaChange[] = [];
    for (const turn of turns) {
      const { turn_id, revision } = turn;
      if (revision > (this.#held.get(turn_id)?.revision ?? -1)) {
        this.#held.set(turn_id, turn);
        changes.push({ kind: "turn", turn_id, revision });
      }
    }
    return changes;
  }

  /** Drop turns that nobody names, once there are more than `messages` and the newest need. */
  dropOld(messages: number, named: () => ReadonlySet<string | undefined>): void {
    if (this.#held.size <= NEWEST + messages) {
      return;
    }
    const kept = named();
    const old = [...this.#held.values()].sort((a, b) => b.revision - a.revision).slice(NEWEST);
    for (const { turn_id } of old) {
      if (!kept.has(turn_id)) {
        this.#held.delete(turn_id);
      }
    }
  }
}
