/** The turns that a replica holds: those of its messages, the running one, and the newest (SPEC 4.6). */
import type { Message, Turn } from "./model.js";

/** Turns that are kept whether or not a message names them, so that a late handle finds its turn's end. */
const NEWEST = 32;

export class Turns {
  readonly #held = new Map<string, Turn>();

  constructor(turns?: Iterable<Turn>) {
    this.take(turns);
  }

  /** The turns by id; a view. */
  get byId(): ReadonlyMap<string, Turn> {
    return this.#held;
  }

  /** Keep what is newer than what is held. */
  take(turns: Iterable<Turn> = []): void {
    for (const turn of turns) {
      if (turn.revision > (this.#held.get(turn.turn_id)?.revision ?? -1)) {
        this.#held.set(turn.turn_id, turn);
      }
    }
  }

  /** Drop turns that nobody names, once there are more than the messages and the newest need. */
  dropOld(messages: readonly Message[], running: string | undefined): void {
    if (this.#held.size > NEWEST + messages.length) {
      const named = new Set(messages.map((message) => message.turn_id)).add(running);
      const old = [...this.#held.values()].sort((a, b) => b.revision - a.revision).slice(NEWEST);
      for (const { turn_id } of old) {
        if (!named.has(turn_id)) {
          this.#held.delete(turn_id);
        }
      }
    }
  }
}
