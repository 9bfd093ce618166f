/**
 * Keeping one replica equal to the server's session, over whatever happens to the link (SPEC 4, 5).
 *
 * One path for all: subscribe, apply the sync, apply what follows. A gap, a reload and a new connection only
 * lead back to its beginning.
 */
import type { MidstreamError } from "../protocol/errors.js";
import type { Closed, Delta, SessionFrame, Signal } from "../protocol/frames.js";
import type { Replica } from "../protocol/merge.js";
import { isMisfit, type Outcome } from "../protocol/outcomes.js";
import type { Environment } from "./environment.js";
import { sessionClosed } from "./errors.js";
import { type Answer, type Exchange, isError } from "./exchange.js";
import { fullJitter } from "./reconnect.js";
import type { Timers } from "./timers.js";
import { Changes } from "./waiting.js";

export type SessionState = "connecting" | "syncing" | "live" | "offline" | "closed";

/** A second gap within this time is not repaired with the cursor again: the copy itself may be wrong. */
const SECOND_GAP_MS = 60_000;
/** So many troubles in a row are met at once; further ones after growing pauses. */
const PATIENCE = 2;
/** A session was made by this name, and deleted. */
const CONFLICT = "idempotency_conflict";

/** What all subscriptions of a client share. */
export interface Tools {
  readonly exchange: Exchange;
  readonly timers: Timers;
  /** Who gets the frames of a channel, which the answer to `subscribe` named; and those of none. */
  readonly router: Map<number, { take(frame: never): void }>;
  readonly environment: Environment;
  /** Make a random id. */
  newId(kind: string): string;
}

/** Where `router` has who gets the frames that have no channel: they are of the list of sessions. */
export const LIST_CHANNEL = -2; // -1 is of a subscription that has no channel yet

/** What a session is subscribed with. */
export interface Wish {
  /** Messages to begin with. */
  readonly limit: number;
  /** Syncs at this pace instead of every frame. */
  readonly paceMs: number | undefined;
  /** Whether to make the session where there is none. */
  readonly create: boolean;
}

/** What a subscription tells its session. */
export interface SubscriptionUser {
  /** After a sync (true), and after a change that is more than text (false). */
  onNews(synced: boolean): void;
  /** After each frame that was applied: a delta, what else changed, or everything. */
  onApplied(news: Delta | "changed" | "reset"): void;
  onSignalled(signal: Signal): void;
  /** The server made the session under another id; `ready` is to be called when it may be subscribed to. */
  onNamed(sessionId: string): void;
  /** Called once; `error` is undefined where this client closed it. */
  onClosed(error: MidstreamError | undefined): void;
}

export class Subscription {
  readonly #tools: Tools;
  readonly #wish: Wish;
  state: SessionState = "connecting";
  /** Why it is closed, where nobody asked for it. */
  error: MidstreamError | undefined;
  /** Told of every frame and every state. */
  readonly changed: Changes;
  user: SubscriptionUser | undefined;
  #create: boolean;
  #isCreating = false;
  #isReady = false;
  /** Counts subscriptions: the answer to an earlier one has no effect any more. */
  #generation = 0;
  #cancelRetry: (() => void) | undefined;
  #gapAt = Number.NEGATIVE_INFINITY;
  #troubles = 0;
  #channel = -1;
  #troubledAt = 0;

  constructor(
    readonly replica: Replica,
    tools: Tools,
    wish: Wish,
  ) {
    this.#tools = tools;
    this.#wish = wish;
    this.#create = wish.create;
    this.changed = new Changes(tools.timers);
  }

  /** The replica is what the store had of it, if anything: it may be brought up to date. */
  ready(): void {
    this.#isReady = true;
    this.changed.notify();
    if (this.#tools.exchange.isConnected) {
      this.connected();
    }
  }

  /** There is a link: subscribe, from where the replica stands. */
  connected(): void {
    if (this.state !== "closed" && !this.#isCreating && this.#isReady) {
      this.#subscribe();
    }
  }

  /** There is no link. */
  disconnected(state: "connecting" | "offline"): void {
    if (this.state !== "closed") {
      this.#beginAnew();
      this.#enter(state);
    }
  }

  /** Take a frame of this subscription. */
  take(frame: SessionFrame | Closed | Signal): void {
    if (frame.tag === "signal") {
      this.user?.onSignalled(frame);
    } else if (frame.tag !== "closed") {
      this.#applied(this.replica.apply(frame), frame);
    } else if (frame.retryable) {
      this.#trouble(false);
    } else {
      this.close(sessionClosed(this.replica.sessionId, frame.code));
    }
  }

  /** End, because of an error or because it was asked for. */
  close(error?: MidstreamError): void {
    if (this.state === "closed") {
      return;
    }
    if ((this.state === "live" || this.state === "syncing") && !error) {
      const params = { session_id: this.replica.sessionId };
      this.#tools.exchange.start("unsubscribe", params, "once", () => undefined);
    }
    this.#beginAnew();
    this.error = error;
    this.#enter("closed");
    this.user?.onClosed(error);
  }

  /** Let nothing that is under way have an effect any more: no frame, no answer, no retry. */
  #beginAnew(): void {
    this.#generation++;
    this.#tools.router.delete(this.#channel);
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #subscribe(isWhole = false): void {
    // from here to the answer, the session's frames belong to the subscription that ends
    this.#beginAnew();
    this.#enter("syncing");
    const generation = this.#generation;
    const { replica } = this;
    const params = {
      session_id: replica.sessionId,
      cursor: isWhole ? undefined : replica.cursor(),
      limit: Math.min(this.#wish.limit, this.#tools.exchange.limits.page_messages),
      include_internal: replica.includeInternal,
      pace_ms: this.#wish.paceMs,
    };
    this.#tools.exchange.start("subscribe", params, "urgent", (answer) => {
      if (generation === this.#generation) {
        this.#answered(answer);
      }
    });
  }

  #answered(answer: Answer<"subscribe">): void {
    if (!isError(answer)) {
      this.#channel = answer.channel;
      this.#tools.router.set(answer.channel, this);
      const outcome = this.replica.applySync(answer.sync);
      if (!isMisfit(outcome)) {
        this.#enter("live");
      }
      this.#applied(outcome);
    } else if (answer.code === "connection_lost") {
      // the next connection subscribes anew
    } else if (answer.code === "not_found" && this.#create) {
      this.#createIt(this.replica.sessionId);
    } else if (answer.retryable) {
      this.#trouble(false, 0);
    } else {
      this.close(answer);
    }
  }

  /** Make the session; where its id may not be chosen, the server gives one, the same as often as it is asked. */
  #createIt(session_id?: string): void {
    this.#create = false;
    this.#isCreating = true;
    const { sessionId: key } = this.replica;
    this.#tools.exchange.start("sessions.create", { session_id, key }, "repeatable", (answer) => {
      this.#isCreating = false;
      if (this.state === "closed") {
        return;
      }
      const name = isError(answer) ? key : (answer.session?.session_id ?? key);
      if (name !== key) {
        this.#isReady = false;
        this.user?.onNamed(name);
      } else if (!isError(answer) || answer.code === "already_exists" || answer.code === CONFLICT) {
        this.#subscribe();
      } else if (session_id && answer.details.field === "session_id") {
        this.#createIt();
      } else {
        this.close(answer);
      }
    });
  }

  /** An answer shows this version: all up to it was sent before, so what is not here was lost (SPEC 3.7). */
  shown({ epoch, version }: { readonly epoch: string; readonly version: number }): void {
    if (this.state === "live" && epoch === this.replica.epoch && version > this.replica.version) {
      this.#applied("gap");
    }
  }

  /** Take what came of a frame, or of the answer to `subscribe`. */
  #applied(outcome: Outcome, frame?: SessionFrame): void {
    if (isMisfit(outcome)) {
      const now = this.#tools.environment.now();
      const isSecond = now - this.#gapAt < SECOND_GAP_MS;
      this.#gapAt = now;
      this.#trouble(isSecond || outcome === "restart");
      return;
    }
    const isDelta = frame?.tag === "d";
    const isSync = !frame || frame.tag === "sync";
    if (outcome !== "ignored") {
      this.user?.onApplied(isDelta ? frame : outcome === "reset" ? outcome : "changed");
    }
    if (isSync || (outcome !== "ignored" && !isDelta)) {
      this.user?.onNews(isSync);
    }
    if (outcome !== "ignored") {
      this.changed.notify();
    }
  }

  /** Subscribe again: at once, or later where that did not help just now. */
  #trouble(isWhole: boolean, patience = PATIENCE): void {
    const { environment, timers } = this.#tools;
    const now = environment.now();
    this.#troubles = now - this.#troubledAt > SECOND_GAP_MS ? 1 : this.#troubles + 1;
    this.#troubledAt = now;
    if (this.#troubles <= patience) {
      this.#subscribe(isWhole);
      return;
    }
    this.#beginAnew();
    this.#enter("syncing");
    const pause = fullJitter(environment, this.#troubles - patience - 1);
    this.#cancelRetry = timers.later(pause, () => this.#subscribe(isWhole));
  }

  #enter(state: SessionState): void {
    this.state = state;
    this.changed.notify();
  }
}
