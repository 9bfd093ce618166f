/**
 * Reading a replica's history from the server: earlier pages, and the proof that it is right (SPEC 4.2, 5.6).
 *
 * Each answer is judged in the middle of the stream, where it stands: there the replica is at the version
 * that the answer shows.
 */
import type { VerifyResult } from "../protocol/calls.js";
import { messageDigest } from "../protocol/digest.js";
import type { Message } from "../protocol/model.js";
import { incompatibleServer } from "./errors.js";
import type { Exchange } from "./exchange.js";
import type { SessionReplica } from "./replica.js";

/** How often a page that does not fit is read again before the server is held to be at fault. */
const REREADS = 20;

/** A message that is not the same here and there; a side is `[revision, digest]`, or undefined if absent. */
export interface Difference {
  readonly sequence: number;
  readonly here: readonly [number, string] | undefined;
  readonly there: readonly [number, string] | undefined;
}

/** What a comparison found. */
export interface VerifyReport {
  /** Whether the replica equals the server, as far as its window reaches. */
  readonly isEqual: boolean;
  /** Messages of the server that were compared. */
  readonly compared: number;
  readonly differences: readonly Difference[];
}

type Digests = VerifyResult["digests"];

/** Compare messages with the server's digests of the same range, at the same version. */
export function differences(messages: readonly Message[], digests: Digests): Difference[] {
  const here = new Map(messages.map((one) => [one.sequence, [one.revision, messageDigest(one)] as const]));
  const there = new Map(digests.map(([sequence, revision, digest]) => [sequence, [revision, digest] as const]));
  return [...new Set([...here.keys(), ...there.keys()])]
    .sort((a, b) => a - b)
    .map((sequence) => ({ sequence, here: here.get(sequence), there: there.get(sequence) }))
    .filter(({ here, there }) => here?.join() !== there?.join());
}

export class History {
  readonly #replica: SessionReplica;
  readonly #exchange: Exchange;
  readonly #ready: () => Promise<void>;
  readonly #onLoaded: () => void;
  /** `ready` waits until the replica is live, and throws what stands against that. */
  constructor(
    replica: SessionReplica,
    exchange: Exchange,
    ready: () => Promise<void>,
    onLoaded: () => void,
  ) {
    this.#replica = replica;
    this.#exchange = exchange;
    this.#ready = ready;
    this.#onLoaded = onLoaded;
  }

  /** Extend the window downwards by up to `limit` messages; false where there are none. */
  async loadEarlier(limit: number): Promise<boolean> {
    for (let left = REREADS; left; left--) {
      await this.#ready();
      if (!this.#replica.law.hasMore) {
        return false;
      }
      if (await this.#readPage(limit)) {
        this.#onLoaded();
        return true;
      }
    }
    throw incompatibleServer("No page of earlier messages fits the replica.");
  }

  /** Compare the window with the server's digests, each page at one and the same version. */
  async verify(): Promise<VerifyReport> {
    const { law } = this.#replica;
    const found: Difference[] = [];
    let compared = 0;
    let start = law.fromSequence ?? 1;
    while (law.session && start <= law.session.message_count) {
      const end = Math.min(start + this.#exchange.limits.page_messages - 1, law.session.message_count);
      const page = await this.#verifyRange(start, end);
      compared += page.compared;
      found.push(...page.differences);
      start = end + 1;
    }
    return { isEqual: !found.length, compared, differences: found };
  }

  async #verifyRange(start: number, end: number): Promise<Omit<VerifyReport, "isEqual">> {
    for (let left = REREADS; left; left--) {
      await this.#ready();
      const page = await this.#verifyPage(start, end);
      if (page) {
        return page;
      }
    }
    throw incompatibleServer("No digests were of the replica's version.");
  }

  /** Read and merge the page before the window; say whether it gave messages. */
  async #readPage(limit: number): Promise<boolean> {
    const { law } = this.#replica;
    let isAwaited = true;
    law.expectPage();
    try {
      const params = {
        session_id: law.sessionId,
        limit: Math.min(limit, this.#exchange.limits.page_messages),
        before_sequence: law.fromSequence,
        include_internal: law.includeInternal,
      };
      return await this.#exchange.ask("messages", params, true, (page) => {
        isAwaited = false;
        return this.#replica.mergePage(page) === "applied" && page.items.length > 0;
      });
    } finally {
      if (isAwaited) {
        law.forgetPage();
      }
    }
  }

  /** Compare a range of sequences; undefined where the answer and the replica show different versions. */
  #verifyPage(start: number, end: number): Promise<Omit<VerifyReport, "isEqual"> | undefined> {
    const { law } = this.#replica;
    const params = {
      session_id: law.sessionId,
      from_sequence: start,
      to_sequence: end,
      include_internal: law.includeInternal,
    };
    return this.#exchange.ask("verify", params, true, ({ epoch, version, digests }) => {
      if (epoch !== law.epoch || version !== law.version) {
        return undefined;
      }
      const here = law.messages().filter(({ sequence }) => start <= sequence && sequence <= end);
      // a reset may have come since: what is below the window now is not held
      const first = law.fromSequence ?? Number.POSITIVE_INFINITY;
      const there = digests.filter(([sequence]) => sequence >= first);
      return { compared: there.length, differences: differences(here, there) };
    });
  }
}
