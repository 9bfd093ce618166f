/**
 * The merge law: what a client makes of frames, syncs and pages (SPEC 4).
 *
 * A `Replica` is given what came, in order, and says what came of it. Whatever happens, it is at each moment
 * what the server's session was at one version, as far as its window reaches. Network, time and retries are
 * not its business.
 */
import type { Cursor, Page } from "./calls.js";
import type { ChangeContent, SessionFrame, SyncPayload } from "./frames.js";
import type { Message, SessionInfo, Turn } from "./model.js";
import { isMisfit, must, type Outcome, type PageOutcome } from "./outcomes.js";
import { Turns } from "./turns.js";
import { type Source, Window } from "./window.js";

/**
 * How far a replica can be relied on. `new`: no sync has come. `restored`: it came from a store, and counts
 * only after a `replay` or `catchup`. `lost`: something is missing that only a `reset` can give.
 */
export type Stage = "new" | "restored" | "live" | "lost";

/** Replica, window and cursor as one value, for a store: write it in one go or not at all (SPEC 4.4, rule 18). */
export interface SavedReplica {
  readonly cursor: Cursor;
  readonly session: SessionInfo;
  readonly turns: readonly Turn[];
  readonly messages: readonly Message[];
  readonly from_sequence: number | null;
  readonly has_more: boolean;
}

const firstOf = (session: SessionInfo): number => session.first_sequence ?? 1;

/** A client's copy of one session, from `fromSequence` upward. */
export class Replica {
  /** Where it changes, the session is another one: a sync or what was saved of that must follow. */
  sessionId: string;
  /** That of the subscription. */
  readonly includeInternal: boolean;
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
  #turns = new Turns();

  constructor(sessionId: string, includeInternal = false) {
    this.sessionId = sessionId;
    this.includeInternal = includeInternal;
    this.#window = new Window(sessionId);
  }

  /** The lower end of the window; undefined while no messages were given, which a page then does. */
  get fromSequence(): number | undefined {
    return this.#window.first;
  }

  /** The turns by id: those of the messages, the running one, and the newest 32. */
  get turns(): ReadonlyMap<string, Turn> {
    return this.#turns.byId;
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
    return frame.tag === "sync" ? this.applySync(frame.payload) : this.#attempt(() => this.#applyNext(frame));
  }

  /** Apply a sync: the answer to `subscribe`, or one that came as a frame. */
  applySync(payload: SyncPayload): Outcome {
    return this.#attempt(() => (payload.mode === "reset" ? this.#reset(payload) : this.#catchUp(payload)));
  }

  /** Merge the answer of `messages` (never of `stored`); nothing changes unless it is applied (rules 13 to 15). */
  mergePage(page: Page): PageOutcome {
    const { session } = this;
    if (
      !session ||
      this.stage !== "live" ||
      page.epoch !== this.epoch ||
      page.include_internal !== this.includeInternal ||
      page.version !== this.version
    ) {
      return "again";
    }
    const start = page.has_more ? page.start_sequence : firstOf(session);
    const isForeign = page.items.some((message) => message.session_id !== this.sessionId);
    if (page.before_sequence !== this.fromSequence || start === undefined || isForeign) {
      return "ignored";
    }
    this.#window.put(page.items);
    this.#window.first = start;
    this.#window.dropBelow(firstOf(session));
    this.hasMore = page.has_more;
    this.#endOfHistory(session);
    this.#turns.take(page.turns);
    return "applied";
  }

  /** Become the replica that was saved; it counts only after a `replay` or `catchup`. */
  restore(saved: SavedReplica): void {
    Object.assign(this, saved.cursor, { stage: "restored", session: saved.session, hasMore: saved.has_more });
    this.#window = new Window(this.sessionId, saved.from_sequence ?? undefined);
    this.#window.put(saved.messages);
    this.#turns = new Turns(saved.turns);
  }

  #applyNext(frame: Exclude<SessionFrame, { tag: "sync" }>): Outcome {
    const { version } = frame;
    must(this.stage !== "lost");
    if (this.stage !== "live" || version <= this.version) {
      return "ignored";
    }
    const since = frame.tag === "skip" ? frame.from_version : frame.tag === "mark" ? version : version - 1;
    must(since <= this.version, "gap");
    if (frame.tag === "d") {
      this.#window.append(this.session?.message_count ?? 0, frame);
    } else if (frame.tag === "change") {
      this.#take(frame.content, { version });
      if (frame.durable) {
        this.durable = version;
      }
    }
    this.version = version;
    return "applied";
  }

  #catchUp(payload: SyncPayload): Outcome {
    must(this.stage === "live" || this.stage === "restored");
    const { version, epoch, durable = version, from: since = version } = payload;
    const isNew = version > this.version;
    if (isNew) {
      must(since <= this.version, "gap");
      this.#take(payload, { version, since });
      Object.assign(this, { epoch, version, durable });
    } else {
      this.#below(payload);
    }
    this.stage = "live";
    return isNew ? "applied" : "ignored";
  }

  #reset(payload: SyncPayload): Outcome {
    const { version, epoch, durable = version, session, has_more: hasMore = false } = payload;
    must(session);
    const window = new Window(this.sessionId, 0);
    window.put(window.plan(payload.messages, { version, since: 0, below: this.#below(payload, 0) }));
    window.first = hasMore ? window.messages()[0]?.sequence : firstOf(session);
    this.#window = window;
    Object.assign(this, { stage: "live", hasMore, epoch, version, durable, session });
    this.#endOfHistory(session);
    this.#turns = new Turns(payload.turns);
    return "reset";
  }

  /** Take what a change or a sync carries, as a whole. @throws Misfit nothing was changed */
  #take(content: ChangeContent, source: Omit<Source, "below">): void {
    const { session } = content;
    const messages = this.#window.plan(content.messages, { ...source, below: this.#below(content) });
    if (session && session.revision > (this.session?.revision ?? -1)) {
      this.session = session;
      this.#window.dropBelow(firstOf(session));
      this.#endOfHistory(session);
    }
    this.#window.put(messages);
    this.#turns.take(content.turns);
    this.#turns.dropOld(this.messages(), this.session?.running_turn_id);
  }

  /** Below which there is nothing once this content is taken. @throws Misfit where it is of another session */
  #below({ session }: ChangeContent, held = this.session ? firstOf(this.session) : 0): number {
    must(!session || session.session_id === this.sessionId);
    return session ? Math.max(held, firstOf(session)) : held;
  }

  /** Note where nothing is below the window any more, or nothing is left at all. */
  #endOfHistory(session: SessionInfo): void {
    const first = firstOf(session);
    if (first > session.message_count) {
      this.#window.first ??= first;
    }
    if ((this.#window.first ?? first + 1) <= first) {
      this.hasMore = false;
    }
  }

  #attempt(step: () => Outcome): Outcome {
    try {
      return step();
    } catch (error) {
      if (!isMisfit(error)) {
        throw error;
      }
      if (error === "restart") {
        this.stage = "lost";
      }
      return error;
    }
  }
}
