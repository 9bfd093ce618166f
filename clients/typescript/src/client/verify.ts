/** The proof that a replica is right (SPEC 5.6). Loaded when it is first asked for. */
import type { VerifyResult } from "../protocol/calls.js";
import { messageDigest } from "../protocol/digest.js";
import type { Message } from "../protocol/model.js";
import type { Scope } from "./requests.js";

/** How often digests of another version are asked for again before the server is held to be at fault. */
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

/** Compare messages with the server's digests of the same range, at the same version. */
export function differences(messages: readonly Message[], digests: VerifyResult["digests"]): Difference[] {
  const here = new Map(messages.map((one) => [one.sequence, [one.revision, messageDigest(one)] as const]));
  const there = new Map(
    digests.map(([sequence, revision, digest]) => [sequence, [revision, digest] as const]),
  );
  return [...new Set([...here.keys(), ...there.keys()])]
    .sort((a, b) => a - b)
    .map((sequence) => ({ sequence, here: here.get(sequence), there: there.get(sequence) }))
    .filter((one) => one.here?.join() !== one.there?.join());
}

/** Compare the window with the server's digests, each page at one and the same version. */
export async function verify(scope: Scope): Promise<VerifyReport> {
  const { replica, exchange } = scope;
  const found: Difference[] = [];
  let compared = 0;
  let left = REREADS;
  await scope.ready();
  for (let start = replica.fromSequence ?? 1; replica.session && start <= replica.session.message_count; ) {
    const end = Math.min(start + exchange.limits.page_messages - 1, replica.session.message_count);
    const page = await verifyPage(scope, start, end);
    if (page) {
      compared += page.compared;
      found.push(...page.found);
      start = end + 1;
      left = REREADS;
    } else if (!--left) {
      scope.fail("No digests were of the replica's version.");
    }
    await scope.ready();
  }
  return { isEqual: !found.length, compared, differences: found };
}

/** Compare a range of sequences; undefined where a sync came between the answer's version and the replica's. */
function verifyPage({ replica, exchange, shown }: Scope, start: number, end: number) {
  const params = {
    session_id: replica.sessionId,
    from_sequence: start,
    to_sequence: end,
    include_internal: replica.includeInternal,
  };
  return exchange.ask("verify", params, "repeatable", ({ epoch, version, digests }) => {
    shown({ epoch, version });
    if (epoch !== replica.epoch || version !== replica.version) {
      return undefined;
    }
    const here = replica.messages().filter(({ sequence }) => start <= sequence && sequence <= end);
    // a reset may have come since: what is below the window now is not held
    const first = replica.fromSequence ?? Number.POSITIVE_INFINITY;
    const there = digests.filter(([sequence]) => sequence >= first);
    return { compared: there.length, found: differences(here, there) };
  });
}
