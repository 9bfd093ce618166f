/**
 * Keeping one replica equal to the server's session, over whatever happens to the link (SPEC 4, 5).
 *
 * One path for all: subscribe, apply the sync, apply what follows. A gap, a reload and a new connection only
 * lead back to its beginning.
 */
import type { Params } from "../protocol/calls.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { Closed, SessionFrame, Signal } from "../protocol/frames.js";
import type { Outcome } from "../protocol/outcomes.js";
import { type Answer, isError } from "./calls.js";
import type { Environment } from "./environment.js";
import { sessionClosed } from "./errors.js";
import type { Exchange } from "./exchange.js";
import { fullJitter } from "./reconnect.js";
import type { SessionReplica } from "./replica.js";
import { Fanout } from "./streams.js";
import type { Timers } from "./timers.js";
import { Changes } from "./waiting.js";

export type SessionState = "connecting" | "syncing" | "live" | "offline" | "closed";

/** A second gap within this time is not repaired with the cursor again: the copy itself may be wrong. */
const SECOND_GAP_MS = 60_000;
/** So many troubles in a row are met at once; further ones after growing pauses. */
const PATIENCE = 2;

/** Who brings frames to subscriptions: by the channel that the answer to `subscribe` named. */
export interface Router {
  listen(channel: number, subscription: Subscription): void;
  mute(subscription: Subscription): void;
}

/** What all subscriptions of a client share. */
export interface Tools {
  readonly exchange: Exchange;
  readonly timers: Timers;
  readonly router: Router;
  readonly environment: Environment;
}

/** What a session is subscribed with. */
export interface Wish {
  /** Messages to begin with. */
  readonly limit: number;
  /** Syncs at this pace instead of every frame. */
  readonly paceMs: number | undefined;
  /** Messages that a replica may grow to; past it, it begins anew with the newest, between turns. */
  readonly maxMessages: number;
  /** How to create the session where there is none. */
  readonly create: Params<"sessions.create"> | undefined;
}

/** What a subscription tells its session. */
export interface SubscriptionUser {
  /** After a sync (true), and after a change that is more than text (false). */
  onNews(synced: boolean): void;
  onSignal(signal: Signal): void;
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
  readonly states = new Fanout<SessionState>();
  user: SubscriptionUser | undefined;
  readonly #sessionId: string;
  #create: Wish["create"];
  #isCreating = false;
  #isReady = false;
  /** Counts subscriptions: the answer to an earlier one has no effect any more. */
  #generation = 0;
  #cancelRetry: (() => void) | undefined;
  #gapAt = Number.NEGATIVE_INFINITY;
  #beganWith = 0;
  #troubles = 0;
  #troubledAt = 0;

  constructor(
    readonly replica: SessionReplica,
    tools: Tools,
    wish: Wish,
  ) {
    this.#tools = tools;
    this.#wish = wish;
    this.#sessionId = replica.law.sessionId;
    this.#create = wish.create;
    this.changed = new Changes((ms, callback) => tools.timers.later(ms, callback));
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
  frame(frame: SessionFrame): void {
    const outcome = this.replica.apply(frame);
    if (outcome.kind === "gap" || outcome.kind === "restart") {
      this.#gap(outcome.kind);
    } else if (frame.tag === "sync" || isNews(outcome)) {
      this.#news(frame.tag === "sync");
    }
    if (outcome.kind !== "ignored") {
      this.changed.notify();
    }
  }

  /** The server ended the subscription. */
  ended(frame: Closed): void {
    if (frame.retryable) {
      this.#trouble(false);
    } else {
      this.close(sessionClosed(this.#sessionId, frame.code));
    }
  }

  /** End, because of an error or because it was asked for. */
  close(error?: MidstreamError): void {
    if (this.state === "closed") {
      return;
    }
    if ((this.state === "live" || this.state === "syncing") && !error) {
      const params = { session_id: this.#sessionId };
      this.#tools.exchange.start("unsubscribe", params, { repeatable: false }, () => undefined);
    }
    this.#beginAnew();
    this.error = error;
    this.#enter("closed");
    this.states.end();
    this.replica.end(error);
    this.user?.onClosed(error);
  }

  /** Let nothing that is under way have an effect any more: no frame, no answer, no retry. */
  #beginAnew(): void {
    this.#generation++;
    this.#tools.router.mute(this);
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #subscribe(isWhole = false): void {
    // from here to the answer, the session's frames belong to the subscription that ends
    this.#beginAnew();
    this.#enter("syncing");
    const { generation } = this;
    const { law } = this.replica;
    const params = {
      session_id: this.#sessionId,
      cursor: isWhole ? undefined : law.cursor(),
      limit: Math.min(this.#wish.limit, this.#tools.exchange.limits.page_messages),
      include_internal: law.includeInternal,
      pace_ms: this.#wish.paceMs,
    };
    this.#tools.exchange.start("subscribe", params, { repeatable: false, urgent: true }, (answer) => {
      if (generation === this.#generation) {
        this.#answered(answer);
      }
    });
  }

  #answered(answer: Answer<"subscribe">): void {
    if (!isError(answer)) {
      this.#tools.router.listen(answer.channel, this);
      const outcome = this.replica.applySync(answer.sync);
      if (answer.sync.mode === "reset") {
        this.#beganWith = this.replica.held;
      }
      if (outcome.kind === "gap" || outcome.kind === "restart") {
        this.#gap(outcome.kind);
      } else {
        this.#enter("live");
        this.#news(true);
      }
    } else if (answer.code === "connection_lost") {
      // the next connection subscribes anew
    } else if (answer.code === "not_found" && this.#create) {
      this.#createIt(this.#create);
    } else if (answer.retryable) {
      this.#trouble(false, 0);
    } else {
      this.close(answer);
    }
  }

  #createIt(params: Params<"sessions.create">): void {
    this.#create = undefined;
    this.#isCreating = true;
    this.#tools.exchange.start("sessions.create", params, { repeatable: true, urgent: true }, (answer) => {
      this.#isCreating = false;
      if (this.state === "closed") {
        return;
      }
      if (isError(answer) && answer.code !== "already_exists") {
        this.close(answer);
      } else {
        this.#subscribe();
      }
    });
  }

  #gap(kind: "gap" | "restart"): void {
    const now = this.#tools.environment.now();
    const isSecond = now - this.#gapAt < SECOND_GAP_MS;
    this.#gapAt = now;
    this.#trouble(isSecond || kind === "restart");
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
    const pause = fullJitter(() => environment.random(), this.#troubles - patience - 1);
    this.#cancelRetry = timers.later(pause, () => this.#subscribe(isWhole));
  }

  #news(synced: boolean): void {
    this.user?.onNews(synced);
    const { session } = this.replica.law;
    // what a reset gave is no growth: it would give the same again, without end
    const isTooMany = this.replica.held > Math.max(this.#wish.maxMessages, 2 * this.#beganWith);
    if (this.state === "live" && session && session.running_turn_id === undefined && isTooMany) {
      this.#subscribe(true);
    }
  }

  #enter(state: SessionState): void {
    if (state !== this.state) {
      this.state = state;
      this.states.publish(state);
    }
    this.changed.notify();
  }
}

/** Whether more than text changed; asked for every frame, so it looks at no more than it must. */
const isNews = (outcome: Outcome): boolean =>
  outcome.kind === "applied" &&
  outcome.changes.length > 0 &&
  !(outcome.changes.length === 1 && outcome.changes[0]?.kind === "appended");
