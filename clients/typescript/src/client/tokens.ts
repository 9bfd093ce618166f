/**
 * The token that a client gives, and what it does when that ends (SPEC 4.7, 7.16, 10.6). Loaded where there is one.
 * Nothing here is imported that the client itself imports, so that it is a small file of its own.
 */
import type { MidstreamError } from "../protocol/errors.js";
import type { WelcomeInfo } from "../protocol/frames.js";
import type { Exchange } from "./exchange.js";
import type { Timers } from "./timers.js";
import type { LinkEnd } from "./transport.js";

/**
 * Credentials, or who gives them: asked before each attempt and in time before they expire; `refused` where the
 * server did not take the last ones. It may take its time: a person may be asked. Null is to have none.
 */
export type Token = string | null | ((refused: boolean) => string | null | Promise<string | null>);

/** Why the server takes a token no more, in the words of SPEC 11.3. */
export type Refusal = "unauthorized" | "token_expired";

/** What becomes of a client after a connection ended. */
export type Verdict = "at once" | "later" | "never";

/** At this part of a token's time it is renewed, */
const PART = 0.8;
/** and so many ms before its end, where there are as many. */
const LEAST_MS = 10_000;
/** A timer takes no more than 24 days; renewed sooner is no harm. */
const MOST_MS = 1_000_000_000;
/** When to try again where there was no other token, or it was refused. */
const AGAIN_MS = 5000;

/** What renewal uses of a client. */
export interface Renewing {
  readonly timers: Timers;
  readonly exchange: Exchange;
  /** Whether the connection is still the one that it began for. */
  isCurrent(): boolean;
  /** Another token is in use: what the server says of it. */
  onRenewed(news: Pick<WelcomeInfo, "subject" | "scopes" | "token_ms">): void;
}

/** What a client has to say who it is. */
export class Tokens {
  /** The token that was given last. */
  given: string | null = null;
  /** Why the server did not take it; undefined once it took one. */
  refusal: Refusal | undefined;
  readonly #token: Token;
  #final: MidstreamError | undefined;
  /** How often the server refused, by the reason, since it took one. */
  #counts: { [reason in Refusal]?: number } = {};

  constructor(token: Token) {
    this.#token = token;
  }

  /** Have a token to say hello with. @throws Error there is none now; MidstreamError there will be none. */
  async prepare(): Promise<void> {
    const token = await this.#ask();
    if (token === null && this.#final) {
      throw this.#final; // it was refused already to be nobody
    }
    this.given = token;
  }

  /** The server took the token. */
  accepted(): void {
    this.refusal = this.#final = undefined;
    this.#counts = {};
  }

  /** A connection ended: what to do now. */
  ended({ code, final }: LinkEnd): Verdict | undefined {
    if (code !== 4504 && code !== 4505) {
      return undefined;
    }
    const refusal = code === 4505 ? "token_expired" : "unauthorized";
    const count = (this.#counts[refusal] ?? 0) + 1;
    this.#counts[refusal] = count;
    this.refusal = refusal;
    this.#final = final;
    if (typeof this.#token !== "function") {
      return "never";
    }
    return count === 1 ? "at once" : code === 4505 ? "later" : "never";
  }

  /** Renew the token of a connection in time, for as long as the connection is current. */
  keep(tokenMs: number | undefined, client: Renewing): void {
    if (tokenMs !== undefined && typeof this.#token === "function") {
      this.#renewIn(
        tokenMs > LEAST_MS ? Math.min(tokenMs * PART, tokenMs - LEAST_MS) : tokenMs * PART,
        client,
      );
    }
  }

  #renewIn(ms: number, client: Renewing): void {
    client.timers.later(Math.min(ms, MOST_MS), () => client.isCurrent() && void this.#renew(client));
  }

  async #renew(client: Renewing): Promise<void> {
    const token = await this.#ask().catch(() => null);
    if (!client.isCurrent()) {
      return;
    }
    if (token === null || token === this.given) {
      this.#renewIn(AGAIN_MS, client);
      return;
    }
    this.given = token;
    client.exchange.start("auth", { token }, "urgent", (answer) => {
      if (answer instanceof Error) {
        this.#renewIn(AGAIN_MS, client);
      } else {
        client.onRenewed(answer);
        this.keep(answer.token_ms, client);
      }
    });
  }

  /** @throws Error none is to be had now; nothing of what the program said is in it, as that might be secret. */
  async #ask(): Promise<string | null> {
    const token = this.#token;
    try {
      return typeof token === "function" ? await token(!!this.refusal) : token;
    } catch (error) {
      throw new Error(`No token was to be had (${error instanceof Error ? error.name : typeof error}).`);
    }
  }
}
