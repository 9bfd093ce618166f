/**
 * The one connection of a client, kept for as long as it is wanted.
 *
 * The shell around `Reconnect`: it carries out what that decides, greets the server, answers pings, and
 * passes everything else on.
 */
import { type Codec, JSON_CODEC, loadMsgpack } from "../protocol/codec.js";
import { MidstreamError } from "../protocol/errors.js";
import { limitsOf, type ServerFrame, type WelcomeInfo } from "../protocol/frames.js";
import { PROTOCOL_VERSION } from "../protocol/limits.js";
import type { Environment } from "./environment.js";
import { type Effect, type Policy, Reconnect } from "./reconnect.js";
import type { Timers } from "./timers.js";
import type { Token, Tokens } from "./tokens.js";
import { type LinkEnd, Transport } from "./transport.js";

/** `connecting`: an attempt is under way. `live`: welcomed. `offline`: waiting to try again. */
export type LinkState = "connecting" | "live" | "offline" | "closed";

/** `auto` is msgpack where this engine can, else JSON. */
export type Encoding = "auto" | "msgpack" | "json";

export interface LinkOptions {
  readonly url: string;
  readonly encoding: Encoding | Codec;
  readonly token: Token;
  readonly policy: Policy;
  readonly maxFrameBytes: number;
}

/** Who is told what happens on a link. */
export interface LinkUser {
  linkOpened(transport: Transport, codec: Codec, welcome: WelcomeInfo): void;
  linkFrame(frame: ServerFrame): void;
  /** There is no connection: one is being made, or will be. */
  linkDown(state: "connecting" | "offline"): void;
  /** There will be no connection any more. */
  linkEnded(error: MidstreamError): void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #user: LinkUser;
  readonly #environment: Environment;
  readonly #timers: Timers;
  /** What ended the last connection or attempt; undefined once there is a connection. */
  problem: string | undefined;
  /** Where there is a token: what is known of it. */
  tokens: Tokens | undefined;
  readonly #core: Reconnect;
  #transport: Transport | undefined;
  #codec: Codec | undefined;
  #welcomed = false;
  #isJsonBetter = false;
  /** Counts attempts: what was begun in an earlier one has no effect any more. */
  #attempt = 0;
  #disarm: (() => void) | undefined;

  constructor(options: LinkOptions, user: LinkUser, environment: Environment, timers: Timers) {
    this.#options = options;
    this.#user = user;
    this.#environment = environment;
    this.#timers = timers;
    this.#core = new Reconnect(environment, options.policy);
  }

  /** Begin to connect; of no effect the second time. */
  start(): void {
    this.#act(this.#core.start(...this.#clocks()));
  }

  /** Prove that the connection lives, or make one at once. */
  wake(): void {
    this.#act(this.#core.wake(...this.#clocks()));
  }

  #clocks(): [number, number] {
    return [this.#environment.now(), this.#environment.wallMs()];
  }

  /** Let the connection go until `wake`. */
  suspend(): void {
    this.#act(this.#core.suspend("the page went"));
  }

  /** End for good. */
  close(): void {
    this.#core.close();
    this.#attempt++;
    this.#disarm?.();
    this.#transport?.abort("closed");
  }

  #act(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "connect") {
        this.#user.linkDown("connecting");
        this.#connect(++this.#attempt);
      } else if (effect.kind === "drop") {
        const transport = this.#transport;
        if (transport) {
          transport.abort(effect.why);
        } else {
          this.#ended({ why: effect.why });
        }
      } else {
        this.#send("ping", effect.nonce);
      }
    }
    this.#arm();
  }

  #arm(): void {
    this.#disarm?.();
    const { deadline } = this.#core;
    this.#disarm =
      deadline === undefined
        ? undefined
        : this.#timers.later(deadline - this.#environment.now(), () =>
            this.#act(this.#core.poll(...this.#clocks())),
          );
  }

  #connect(attempt: number): void {
    this.#welcomed = false;
    this.#prepare(attempt).then(
      (codec) => this.#timers.run(() => attempt === this.#attempt && this.#open(attempt, codec)),
      (error: unknown) => this.#timers.run(() => attempt === this.#attempt && this.#ended(failed(error))),
    );
  }

  /** Have what an attempt needs: a codec, which is loaded once, and the token of now. */
  async #prepare(attempt: number): Promise<Codec> {
    const { encoding, token } = this.#options;
    if (typeof encoding === "object") {
      this.#codec = encoding;
    } else if (encoding === "json" || this.#isJsonBetter) {
      this.#codec = JSON_CODEC;
    }
    this.#codec ??= await loadMsgpack().catch((error: unknown) => {
      if (encoding === "auto") {
        return JSON_CODEC;
      }
      throw error;
    });
    if (token !== null) {
      this.tokens ??= new (await import("./tokens.js")).Tokens(token);
      this.#core.waits(Number.POSITIVE_INFINITY);
      await this.tokens.prepare();
      if (attempt === this.#attempt) {
        this.#core.waits(this.#environment.now());
      }
    }
    return this.#codec;
  }

  #open(attempt: number, codec: Codec): void {
    const guarded =
      <A extends readonly unknown[]>(act: (...given: A) => void) =>
      (...given: A) =>
        this.#timers.run(() => attempt === this.#attempt && act(...given));
    const { url, maxFrameBytes } = this.#options;
    let socket: ReturnType<Environment["socket"]>;
    try {
      socket = this.#environment.socket(url, [codec.subprotocol]);
    } catch (error) {
      this.#ended(failed(error));
      return;
    }
    this.#transport = new Transport(socket, codec, maxFrameBytes, {
      opened: guarded(() =>
        this.#send("hello", PROTOCOL_VERSION, this.tokens?.given ?? null, { client: "midstream-typescript" }),
      ),
      received: guarded((frame) => this.#received(frame)),
      ended: guarded((end) => this.#ended(end)),
    });
  }

  #received(frame: ServerFrame | undefined): void {
    const now = this.#environment.now();
    this.#core.received(now);
    if (frame?.tag === "ping") {
      this.#send("pong", frame.nonce, this.#environment.wallMs());
    } else if (frame?.tag === "pong") {
      this.#core.ponged(now, frame.nonce);
      this.#arm();
    } else if (frame?.tag === "goaway") {
      this.#core.goaway(now, frame.reconnect_after_ms);
      this.#arm();
    } else if (frame?.tag === "welcome") {
      this.#welcome(now, frame.info);
    } else if (frame && this.#welcomed) {
      this.#user.linkFrame(frame);
    }
  }

  #welcome(now: number, welcome: WelcomeInfo): void {
    if (this.#welcomed || !this.#transport || !this.#codec) {
      return;
    }
    this.#welcomed = true;
    this.tokens?.accepted();
    this.problem = undefined;
    this.#transport.chunkBytes = limitsOf(welcome).chunk_bytes;
    this.#core.welcomed(now, welcome.heartbeat_ms);
    this.#arm();
    this.#user.linkOpened(this.#transport, this.#codec, welcome);
  }

  #ended(end: LinkEnd): void {
    this.#attempt++;
    this.#transport = undefined;
    this.problem = end.why;
    // what one encoding cannot read, the other may: msgpack knows keys that its library refuses
    this.#isJsonBetter ||= !!end.isUnreadable && this.#options.encoding === "auto";
    const verdict = this.tokens?.ended(end);
    const final = verdict && verdict !== "never" ? undefined : end.final;
    this.#core.lost(this.#environment.now(), !!final, verdict === "at once");
    this.#arm();
    if (final) {
      this.#user.linkEnded(final);
    } else {
      this.#user.linkDown("offline");
    }
  }

  #send(...frame: readonly unknown[]): void {
    if (this.#codec) {
      this.#transport?.send(this.#codec.encode(frame));
    }
  }
}

/** What stands against an attempt before there is a socket; an error of ours will be the same the next time. */
const failed = (error: unknown): LinkEnd => {
  const why = error instanceof Error ? error.message : String(error);
  return error instanceof MidstreamError ? { why, final: error } : { why };
};
