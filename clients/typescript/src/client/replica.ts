/** The replica of a session, and the mutations that tell how it changes (SPEC 4). */
import type { Page } from "../protocol/calls.js";
import type { SessionFrame, SyncPayload } from "../protocol/frames.js";
import { Replica } from "../protocol/merge.js";
import type { Outcome, PageOutcome, ReplicaChange } from "../protocol/outcomes.js";
import type { Mutation, Payload, ResetReason } from "./mutations.js";
import { Fanout, type Stream } from "./streams.js";

/** Mutations that wait for one reader: a minute of fast streaming. */
const MUTATION_LIMIT = 10_000;

/** A mutation without what all of a version share. */
type Told = Payload & { readonly created_at: number; readonly revision: number };

/** A replica that tells its readers what changed, after it changed; only while somebody reads. */
export class SessionReplica {
  readonly law: Replica;
  readonly #readers = new Fanout<Mutation>(MUTATION_LIMIT);

  constructor(sessionId: string, includeInternal: boolean) {
    this.law = new Replica(sessionId, includeInternal);
  }

  /** How many messages the window spans at most: removed and internal ones count too. */
  get held(): number {
    const { session, fromSequence } = this.law;
    return session && fromSequence !== undefined ? session.message_count - fromSequence + 1 : 0;
  }

  /** A stream of all mutations from now on, of which at most `limit` wait. */
  mutations(limit?: number): Stream<Mutation> {
    return this.#readers.reader(limit, () => this.#reset("slow"));
  }

  apply(frame: SessionFrame): Outcome {
    return this.#tell(this.law.apply(frame));
  }

  /** Apply the answer to `subscribe`. */
  applySync(payload: SyncPayload): Outcome {
    return this.#tell(this.law.applySync(payload));
  }

  /** Merge a page that `law.expectPage` announced. */
  mergePage(page: Page): PageOutcome {
    const outcome = this.law.mergePage(page);
    if (outcome === "applied" && page.items.length && this.#readers.isRead) {
      this.#readers.publish(this.#reset("loaded"));
    }
    return outcome;
  }

  /** End all streams of mutations. */
  end(error?: unknown): void {
    this.#readers.end(error);
  }

  #tell(outcome: Outcome): Outcome {
    if (outcome.kind === "applied" && this.#readers.isRead) {
      const told = outcome.changes.flatMap((change) => this.#told(change));
      for (const [index, item] of told.entries()) {
        this.#readers.publish(this.#mutation(item, told.length > 1 ? index : undefined));
      }
    }
    return outcome;
  }

  #told(change: ReplicaChange): Told[] {
    const { law } = this;
    switch (change.kind) {
      case "appended": {
        const { message_id, part_id, revision, text } = change;
        const created_at = law.message(message_id)?.updated_at ?? 0;
        return [{ variant: "delta", created_at, revision, message_id, part_id, payload: { text } }];
      }
      case "message":
        return this.#toldOfMessage(change);
      case "turn": {
        const turn = law.turns.get(change.turn_id); // a sync with many old turns keeps the newest alone
        const created_at = turn?.finished_at ?? turn?.phase_since ?? 0;
        return turn ? [{ variant: "turn", created_at, revision: change.revision, payload: turn }] : [];
      }
      case "session":
        return law.session
          ? [{ variant: "session", created_at: this.#now(), revision: change.revision, payload: law.session }]
          : [];
      default:
        return [this.#toldReset(change.kind === "reset" ? "synced" : "cleared")];
    }
  }

  #toldOfMessage(change: Extract<ReplicaChange, { kind: "message" }>): Told[] {
    const { message_id, revision, parts } = change;
    const message = this.law.message(message_id);
    if (!message) {
      return [];
    }
    const created_at = message.updated_at;
    if (change.isNew || change.durable || change.lost || !parts.length) {
      return [{ variant: "message", created_at, revision, message_id, payload: message }];
    }
    return message.parts
      .filter((part) => parts.includes(part.sequence))
      .map((payload) => ({ variant: "part", created_at, revision, message_id, part_id: payload.part_id, payload }));
  }

  #toldReset(reason: ResetReason): Told {
    return { variant: "reset", created_at: this.#now(), revision: this.law.version, payload: { reason } };
  }

  #reset(reason: ResetReason): Mutation {
    // no version made it, so its id must not be that of one
    return this.#mutation(this.#toldReset(reason), reason);
  }

  #mutation(told: Told, suffix: string | number | undefined): Mutation {
    const { epoch, version, sessionId: session_id } = this.law;
    const mutation_id = [epoch, version, suffix].filter((piece) => piece !== undefined).join(":");
    return { ...told, mutation_id, session_id };
  }

  #now(): number {
    return this.law.session?.updated_at ?? 0;
  }
}
