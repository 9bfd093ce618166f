/**
 * The merge law: what a client makes of frames, syncs and pages (SPEC 4).
 *
 * A `Replica` is given what came, in order, and says what came of it. Whatever happens, it is at each moment
 * what the server's session was at one version, as far as its window reaches. Network, time and retries are
 * not its business.
 */
import type { Cursor, Page } from "./calls.js";
import type { Change, ChangeContent, Delta, SessionFrame, SyncPayload } from "./frames.js";
import type { Message, SessionInfo, Turn } from "./model.js";
import { type Gap, Misfit, type Outcome, type PageOutcome, type ReplicaChange, restart } from "./outcomes.js";
import { AwaitedPages, earlierMessages } from "./pages.js";
import { Turns } from "./turns.js";
import { type Step, Window } from "./window.js";

/**
 * How far a replica can be relied on. `new`: no sync has come. `restored`: it came from a store, and counts
 * only after a `replay` or `catchup`. `lost`: something is missing that only a `reset` can give.
 */
export type Stage = "new" | "restored" | "live" | "lost";

/** Replica, window and cursor as one value, for a store: write it in one go or not at all (SPEC 4.4, rule 18). */
export interface SavedReplica {
  readonly session_id: string;
  readonly include_internal: boolean;
  readonly cursor: Cursor;
  readonly session: SessionInfo;
  readonly turns: readonly Turn[];
  readonly messages: readonly Message[];
  readonly from_sequence?: number;
  readonly has_more: boolean;
}

const IGNORED: Outcome = { kind: "ignored" };
const firstOf = (session: SessionInfo): number => session.first_sequence ?? 1;

/** A client's copy of one session, from `fromSequence` upward. */
export class Replica {
  stage: Stage = "new";
  session: SessionInfo | undefined;
  epoch: string | undefined;
  /** The version reached (`last` in SPEC.md). */
  version = 0;
  /** The last committed version at or below `version`, as far as is known; too low is safe. */
  durable = 0;
  /** Whether there are messages below the window, to be read as pages. */
  hasMore = true;
  #window: Window;
  #held = new Turns();
  readonly #pages = new AwaitedPages();

  /** `includeInternal` is that of the subscription. */
  constructor(
    readonly sessionId: string,
    readonly includeInternal = false,
  ) {
    this.#window = new Window(sessionId);
  }

  /** The lower end of the window; undefined while no messages were given, which a page then does. */
  get fromSequence(): number | undefined {
    return this.#window.first;
  }

  /** The turns by id: those of the messages, the running one, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn> {
    return this.#held.byId;
  }

  /** The turn that runs now. */
  get runningTurn(): Turn | undefined {
    return this.turns.get(this.session?.running_turn_id ?? "");
  }

  /** The messages of the window, ascending: the same list until something changes, and so for each message. */
  messages(): readonly Message[] {
    return this.#window.messages();
  }

  message(messageId: string): Message | undefined {
    return this.#window.message(messageId);
  }

  /** What to subscribe with; undefined before the first sync, and while something is missing. */
  cursor(): Cursor | undefined {
    const { epoch, version, durable } = this;
    return epoch === undefined || this.stage === "lost" ? undefined : { epoch, version, durable };
  }

  /** Apply the next frame of the subscription; those before the first sync are ignored. */
  apply(frame: SessionFrame): Outcome {
    if (frame.tag === "sync") {
      return this.applySync(frame.payload);
    }
    if (this.stage === "lost") {
      return NOTHING.gap;
    }
    if (this.stage !== "live" || frame.version <= this.version) {
      return IGNORED;
    }
    const since = frame.tag === "skip" ? frame.from_version : frame.tag === "mark" ? frame.version : frame.version - 1;
    if (since > this.version) {
      return this.#missed(since);
    }
    if (frame.tag === "d") {
      return this.#attempt(() => this.#applyDelta(frame));
    }
    if (frame.tag === "change") {
      return this.#attempt(() => this.#applyChange(frame));
    }
    this.version = frame.version;
    return { kind: "applied", changes: [] };
  }

  /** Apply a sync: the answer to `subscribe`, or one that came as a frame. */
  applySync(payload: SyncPayload): Outcome {
    return this.#attempt(() => (payload.mode === "reset" ? this.#reset(payload) : this.#catchUp(payload)));
  }

  /** Keep single frames from here on, for a page that is asked for now; then `mergePage`. */
  expectPage(): void {
    this.#pages.expect(this.version);
  }

  /** A page that was expected will not come. */
  forgetPage(): void {
    this.#pages.forget();
  }

  /** Merge the answer of `messages` (never of `stored`); nothing changes unless it is applied. */
  mergePage(page: Page): PageOutcome {
    const outcome = this.#judgePage(page);
    this.#pages.forget();
    return outcome;
  }

  /** Return everything as one value for a store, with the newest `most` messages; undefined without a cursor. */
  save(most = Number.POSITIVE_INFINITY): SavedReplica | undefined {
    const cursor = this.cursor();
    if (!cursor || !this.session) {
      return undefined;
    }
    const messages = this.messages().slice(-most);
    const isCut = messages.length < this.#window.size;
    const from = isCut ? messages[0]?.sequence : this.fromSequence;
    return {
      session_id: this.sessionId,
      include_internal: this.includeInternal,
      cursor,
      session: this.session,
      turns: [...this.turns.values()],
      messages,
      ...(from === undefined ? {} : { from_sequence: from }),
      has_more: this.hasMore || isCut,
    };
  }

  /** Become the replica that was saved; it counts only after a `replay` or `catchup`. */
  restore(saved: SavedReplica): void {
    this.stage = "restored";
    this.session = saved.session;
    ({ epoch: this.epoch, version: this.version, durable: this.durable } = saved.cursor);
    this.hasMore = saved.has_more;
    this.#window = new Window(this.sessionId, saved.from_sequence);
    this.#window.put(saved.messages);
    this.#held = new Turns(saved.turns);
  }

  #applyDelta(frame: Delta): ReplicaChange[] {
    const change = this.#window.append(frame);
    this.version = frame.version;
    this.#pages.keep(frame);
    return change ? [change] : [];
  }

  #applyChange(frame: Change): ReplicaChange[] {
    const { content, version } = frame;
    const durable = frame.durable ? version : this.durable;
    const steps = this.#window.plan(content.messages, { version, below: this.#below(content), durable });
    this.version = version;
    this.durable = durable;
    this.#pages.keep(frame);
    return this.#carryOut(steps, content);
  }

  #catchUp(payload: SyncPayload): ReplicaChange[] | Outcome {
    if (this.stage === "new" || this.stage === "lost") {
      throw NOTHING;
    }
    const { version, epoch, durable = version, from: since = version } = payload;
    const below = this.#below(payload);
    if (version <= this.version) {
      this.stage = "live";
      return IGNORED;
    }
    if (since > this.version) {
      return this.#missed(since);
    }
    const steps = this.#window.plan(payload.messages, { version, since, below, durable });
    this.stage = "live";
    Object.assign(this, { epoch, version, durable });
    this.#pages.restart(version);
    return this.#carryOut(steps, payload);
  }

  #reset(payload: SyncPayload): ReplicaChange[] {
    const { version, epoch, durable = version, session } = payload;
    if (!session) {
      throw NOTHING;
    }
    const window = new Window(this.sessionId, 0);
    const steps = window.plan(payload.messages, { version, since: 0, below: this.#below(payload, 0), durable });
    window.carryOut(steps);
    this.stage = "live";
    this.hasMore = payload.has_more === true;
    Object.assign(this, { epoch, version, durable, session });
    window.first = this.hasMore ? window.messages()[0]?.sequence : firstOf(session);
    this.#window = window;
    this.#endOfHistory(session);
    this.#held = new Turns(payload.turns);
    this.#pages.restart(version);
    return [{ kind: "reset" }];
  }

  #carryOut(steps: readonly Step[], content: ChangeContent): ReplicaChange[] {
    const changes: ReplicaChange[] = [];
    const session = this.#newer(content.session);
    if (session) {
      this.session = session;
      if (this.#window.dropBelow(firstOf(session))) {
        changes.push({ kind: "dropped" });
      }
      this.#endOfHistory(session);
    }
    changes.push(...this.#window.carryOut(steps), ...this.#held.take(content.turns));
    this.#held.dropOld(
      this.#window.size,
      () => new Set([...this.messages().map((message) => message.turn_id), this.session?.running_turn_id]),
    );
    if (session) {
      changes.push({ kind: "session", revision: session.revision });
    }
    return changes;
  }

  #newer(session: SessionInfo | undefined): SessionInfo | undefined {
    return session && session.revision > (this.session?.revision ?? -1) ? session : undefined;
  }

  #judgePage(page: Page): PageOutcome {
    if (
      !this.session ||
      this.stage !== "live" ||
      page.epoch !== this.epoch ||
      page.include_internal !== this.includeInternal ||
      page.version > this.version
    ) {
      return "again";
    }
    const frames = page.version === this.version ? [] : this.#pages.above(page.version);
    if (!frames) {
      return "again";
    }
    const earlier = earlierMessages(page, this.sessionId, this.fromSequence, frames, firstOf(this.session));
    if (typeof earlier === "string") {
      return earlier;
    }
    this.#window.join(earlier);
    this.hasMore = page.has_more;
    this.#endOfHistory(this.session);
    this.#held.take(page.turns);
    return "applied";
  }

  /** Note where nothing is below the window any more, or nothing is left at all. */
  #endOfHistory(session: SessionInfo): void {
    const first = firstOf(session);
    if (this.#window.first === undefined && first > session.message_count) {
      this.#window.first = first;
    }
    if (this.#window.first !== undefined && this.#window.first <= first) {
      this.hasMore = false;
    }
  }

  /** Below which there is nothing once this content is taken. @throws Misfit where it is of another session */
  #below({ session }: ChangeContent, held = this.session ? firstOf(this.session) : 0): number {
    if (session && session.session_id !== this.sessionId) {
      throw NOTHING;
    }
    return session ? Math.max(held, firstOf(session)) : held;
  }

  #missed(reached: number): Gap {
    return { kind: "gap", reason: `nothing was received for versions ${this.version + 1} to ${reached}` };
  }

  #attempt(step: () => ReplicaChange[] | Outcome): Outcome {
    try {
      const changes = step();
      return Array.isArray(changes) ? { kind: "applied", changes } : (changes as Outcome);
    } catch (error) {
      if (!(error instanceof Misfit)) {
        throw error;
      }
      if (error.gap.kind === "restart") {
        this.stage = "lost";
      }
      return error.gap;
    }
  }
}

const NOTHING = restart("there is nothing to go on from; only a reset helps");
