/** The Python and the TypeScript replica, given the same: they say the same of it, and end byte-equal. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { saved } from "../../src/client/keeper.js";
import { readResult } from "../../src/protocol/calls.js";
import { canonical } from "../../src/protocol/digest.js";
import { readServerFrame, type SessionFrame } from "../../src/protocol/frames.js";
import { Replica } from "../../src/protocol/merge.js";
import type { Value } from "../../src/protocol/model.js";
import { hasServer, PYTHON, ROOT } from "./server.js";

const COUNT = 1000;

interface Sequence {
  readonly seed: number;
  readonly steps: readonly ["frame" | "page" | "reload", unknown, string][];
  readonly end: string;
}

/** What Python generated; undefined where its test tools are not installed. */
async function sequences(): Promise<Sequence[] | undefined> {
  try {
    const { stdout } = await promisify(execFile)(PYTHON, ["-m", "tests.protocol.sequences", String(COUNT)], {
      cwd: ROOT,
      maxBuffer: 1024 ** 3,
    });
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Sequence);
  } catch (error) {
    if (String(error).includes("No module named")) {
      return undefined;
    }
    throw error;
  }
}

function take(replica: Replica, what: "frame" | "page", given: unknown): string {
  const outcome =
    what === "page"
      ? replica.mergePage(readResult("messages", given))
      : replica.apply(readServerFrame(given) as SessionFrame);
  return outcome === "reset" ? "applied" : outcome;
}

/** The replica after a reload. */
function reloaded(replica: Replica): Replica {
  const kept = saved(replica, Number.POSITIVE_INFINITY);
  const again = new Replica(replica.sessionId);
  if (kept) {
    again.restore(kept);
  }
  return again;
}

function view(replica: Replica): string {
  const turns = [...replica.turns.values()].sort((a, b) => (a.turn_id < b.turn_id ? -1 : 1));
  const seen = {
    messages: replica.messages(),
    turns,
    session: replica.session ?? null,
    cursor: replica.cursor() ?? null,
    from_sequence: replica.fromSequence ?? null,
    has_more: replica.hasMore,
  };
  return canonical(seen as unknown as Value);
}

test.skipIf(!hasServer)(
  "1,000 sequences end the same in both languages",
  { timeout: 120_000 },
  async ({ skip }) => {
    const all = await sequences();
    if (!all) {
      skip("the test tools of Python are not installed");
      return;
    }
    expect(all.length).toBe(COUNT);
    for (const { seed, steps, end } of all) {
      let replica = new Replica("s");
      for (const [at, [what, given, outcome]] of steps.entries()) {
        if (what === "reload") {
          replica = reloaded(replica);
        } else if (take(replica, what, given) !== outcome) {
          expect.fail(`seed ${seed}, step ${at}: Python says ${outcome} of ${JSON.stringify(given)}`);
        }
      }
      expect(view(replica), `seed ${seed}`).toBe(end);
    }
  },
);
