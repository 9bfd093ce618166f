/** One connection and all that is read over it: frames, answers and news of the link go where they belong. */
import type { Codec } from "../protocol/codec.js";
import type { MidstreamError } from "../protocol/errors.js";
import type { ServerFrame, WelcomeInfo } from "../protocol/frames.js";
import type { Environment } from "./environment.js";
import { clientClosed, clientFailed } from "./errors.js";
import { Exchange } from "./exchange.js";
import { Link, type LinkOptions, type LinkState, type LinkUser } from "./link.js";
import { Fanout } from "./streams.js";
import type { Router, Subscription, Tools } from "./subscription.js";
import { Timers } from "./timers.js";
import type { Transport } from "./transport.js";
import { Changes } from "./waiting.js";

/** The inside of a client: its link, its calls and its subscriptions. */
export class Hub implements LinkUser, Router {
  readonly #environment: Environment;
  state: LinkState = "connecting";
  /** Why it is closed, where nobody asked for it. */
  error: MidstreamError | undefined;
  welcome: WelcomeInfo | undefined;
  readonly states = new Fanout<LinkState>();
  readonly changed: Changes;
  readonly exchange: Exchange;
  readonly tools: Tools;
  /** Called when the program may be ended at any moment. */
  onAsleep: () => void = () => undefined;
  readonly #timers: Timers;
  readonly #link: Link;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #channels = new Map<number, Subscription>();
  #unwatch: (() => void) | undefined;

  constructor(
    options: LinkOptions,
    environment: Environment,
    callTimeoutMs: number | undefined,
  ) {
    this.#environment = environment;
    const timers = new Timers(environment, (error) => this.#end(clientFailed(error)));
    this.#timers = timers;
    this.exchange = new Exchange(timers, () => environment.random(), callTimeoutMs);
    this.changed = new Changes((ms, callback) => timers.later(ms, callback));
    this.tools = { exchange: this.exchange, timers, router: this, environment };
    this.#link = new Link(options, this, environment, timers);
  }

  /** Connect, if that has not begun. @throws MidstreamError it is closed. */
  begin(): void {
    if (this.state === "closed") {
      throw this.error ?? clientClosed();
    }
    this.#unwatch ??= this.#environment.watch?.((news) =>
      this.#timers.run(() => {
        if (news === "awake") {
          this.#link.wake();
        } else {
          this.onAsleep();
          if (news === "away") {
            this.#link.suspend();
          }
        }
      }),
    );
    this.#link.start();
  }

  /** Keep this subscription from now on, until `remove`. */
  add(subscription: Subscription, sessionId: string): void {
    this.#subscriptions.set(sessionId, subscription);
    if (this.state === "offline") {
      subscription.disconnected("offline");
    }
  }

  /** Forget a subscription that is closed. */
  remove(sessionId: string): void {
    this.#subscriptions.delete(sessionId);
  }

  close(): void {
    this.#end(undefined);
  }

  listen(channel: number, subscription: Subscription): void {
    this.#channels.set(channel, subscription);
  }

  mute(subscription: Subscription): void {
    for (const [channel, to] of this.#channels) {
      if (to === subscription) {
        this.#channels.delete(channel);
      }
    }
  }

  /** Take a new connection: subscribe anew, then repeat what is safe to repeat. */
  linkOpened(transport: Transport, codec: Codec, welcome: WelcomeInfo): void {
    this.welcome = welcome;
    this.exchange.problem = undefined;
    this.#enter("live");
    this.exchange.connect(transport, codec, welcome.limits);
    for (const subscription of [...this.#subscriptions.values()]) {
      subscription.connected();
    }
    this.exchange.release();
  }

  /** Bring a frame where it belongs; those of channels that are not ours any more are ignored. */
  linkFrame(frame: ServerFrame): void {
    switch (frame.tag) {
      case "result":
        this.exchange.answered(frame.id, frame);
        break;
      case "error":
        if (frame.id !== null) {
          this.exchange.answered(frame.id, frame);
        }
        break;
      case "d":
      case "change":
      case "skip":
      case "sync":
      case "mark":
        this.#channels.get(frame.channel)?.frame(frame);
        break;
      case "closed":
        this.#channels.get(frame.channel)?.ended(frame);
        break;
      case "signal":
        this.#channels.get(frame.channel)?.user?.onSignal(frame);
        break;
    }
  }

  linkDown(state: "connecting" | "offline"): void {
    this.exchange.problem = this.#link.problem;
    this.#channels.clear();
    this.exchange.disconnect();
    this.#enter(state);
    for (const subscription of [...this.#subscriptions.values()]) {
      subscription.disconnected(state);
    }
  }

  linkEnded(error: MidstreamError): void {
    this.#end(error);
  }

  /** End all; once. */
  #end(error: MidstreamError | undefined): void {
    if (this.state === "closed") {
      return;
    }
    this.error = error;
    this.#enter("closed");
    this.#unwatch?.();
    for (const subscription of [...this.#subscriptions.values()]) {
      subscription.close(error);
    }
    this.exchange.close(error ?? clientClosed());
    this.#link.close();
    this.#timers.cancelAll();
    this.states.end();
  }

  #enter(state: LinkState): void {
    if (state !== this.state) {
      this.state = state;
      this.states.publish(state);
      this.changed.notify();
    }
  }
}
