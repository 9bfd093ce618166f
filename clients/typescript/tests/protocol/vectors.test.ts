/** Every vector that a client needs, run by the code. */
import { describe, expect, test } from "vitest";
import { readListFrames } from "../../src/client/listing.js";
import { readResult } from "../../src/protocol/calls.js";
import { ChunkAssembler } from "../../src/protocol/chunks.js";
import { type Codec, JSON_CODEC, loadMsgpack } from "../../src/protocol/codec.js";
import { canonical, messageDigest } from "../../src/protocol/digest.js";
import { MidstreamError } from "../../src/protocol/errors.js";
import { type Chunk, readServerFrame, type SessionFrame } from "../../src/protocol/frames.js";
import { Replica } from "../../src/protocol/merge.js";
import type { Message, Value } from "../../src/protocol/model.js";
import type { Outcome } from "../../src/protocol/outcomes.js";
import { sha256 } from "../../src/protocol/sha256.js";
import { utf8 } from "../../src/protocol/utf8.js";
import { files, fromHex, load, toHex, withBytes } from "./vectors.js";

const MSGPACK = await loadMsgpack();
readListFrames();
const LAWS = ["merges.json", "gaps.json", "pages.json"];
/** Frames of workers, which a client ignores (SPEC 14). */
const OF_WORKERS = ["offer", "ack", "wrote", "refused", "answered", "inputs", "detached"];

/** What is thrown; a test fails where nothing is. */
function thrown(act: () => unknown): MidstreamError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(MidstreamError);
    return error as MidstreamError;
  }
  throw new Error("nothing was thrown");
}

/** A frame without its names, as it goes over the wire: a short delta has no tag. */
const plain = (frame: object): unknown[] => {
  const isShort = "elapsed" in frame && !("part_sequence" in frame);
  return Object.values(frame).slice(isShort ? 1 : 0);
};

test("the vectors are all here", () => {
  expect(files().length).toBeGreaterThanOrEqual(9);
});

interface Encoding {
  from: "client" | "server";
  frame: unknown[];
  msgpack?: string;
  json?: string;
  only?: string;
  decode_only?: boolean;
}

describe("encodings", () => {
  const forms = (given: Encoding): [Codec, Uint8Array | string][] => [
    ...(given.only === "msgpack"
      ? []
      : [[JSON_CODEC, given.json ?? JSON.stringify(given.frame)] as [Codec, string]]),
    ...(given.only === "json" ? [] : [[MSGPACK, fromHex(given.msgpack ?? "")] as [Codec, Uint8Array]]),
  ];
  const cases = load<Encoding>("encodings.json").cases;

  test.each(cases.filter((given) => given.from === "server"))("$name", (given) => {
    const frames = forms(given).map(([codec, data]) => readServerFrame(codec.decode(data)));
    if (OF_WORKERS.includes(String(given.frame[0]))) {
      expect(frames).toEqual(frames.map(() => undefined));
      return;
    }
    for (const frame of frames) {
      // what the document does not know, and what has its usual value, is passed on and means nothing
      const read = frame && plain(frame);
      if (given.decode_only) {
        expect(read).toMatchObject(withBytes(given.frame) as object);
      } else {
        expect(read).toEqual(withBytes(given.frame));
      }
    }
  });

  test.each(cases.filter((given) => given.from === "client"))("$name", (given) => {
    for (const [codec, data] of forms(given)) {
      const value = codec.decode(data);
      if (!given.decode_only) {
        expect(value).toEqual(withBytes(given.frame));
      }
      expect(codec.decode(codec.encode(value))).toEqual(value);
    }
  });
});

interface Refusal {
  read: string;
  msgpack?: string;
  json?: string;
  error: { code: string; field?: string };
}

describe("refusals", () => {
  const isMine = (given: Refusal) =>
    given.read === "server_frame" && !OF_WORKERS.some((tag) => given.json?.startsWith(`["${tag}"`));
  const cases = load<Refusal>("refusals.json").cases.filter(isMine);

  test("there are some that are a client's", () => {
    expect(cases.length).toBeGreaterThanOrEqual(4);
  });

  test.each(cases)("$name", (given) => {
    const { code, ...details } = given.error;
    const forms: [Codec, Uint8Array | string][] = [];
    if (given.msgpack !== undefined) {
      forms.push([MSGPACK, fromHex(given.msgpack)]);
    }
    if (given.json !== undefined) {
      forms.push([JSON_CODEC, given.json]);
    }
    for (const [codec, data] of forms) {
      const error = thrown(() => readServerFrame(codec.decode(data)));
      expect(error.code).toBe(code);
      expect(error.details).toMatchObject(details);
    }
  });
});

interface Pieces {
  encoding: string;
  limit_bytes: number;
  chunks?: [number, boolean, string][];
  chunk_texts?: string[];
  results: (null | string | { error: string })[];
}

test.each(load<Pieces>("chunks.json").cases)("chunks: $name", (given) => {
  const isBinary = given.encoding === "msgpack";
  const assembler = new ChunkAssembler(given.limit_bytes);
  const pieces =
    given.chunk_texts?.map((text) => readServerFrame(JSON_CODEC.decode(text)) as Chunk) ??
    given.chunks?.map(
      ([n, last, piece]): Chunk => ({ tag: "chunk", n, last, piece: isBinary ? fromHex(piece) : piece }),
    ) ??
    [];
  expect(pieces.length).toBe(given.results.length);
  for (const [at, chunk] of pieces.entries()) {
    const result = given.results[at];
    if (typeof result === "object" && result !== null) {
      const { error: code, ...details } = result;
      const error = thrown(() => assembler.feed(chunk));
      expect(error.code).toBe(code);
      expect(error.details).toMatchObject(details);
    } else {
      const whole = assembler.feed(chunk);
      expect(whole instanceof Uint8Array ? toHex(whole) : (whole ?? null)).toBe(result);
    }
  }
});

interface Digest {
  value?: Value;
  message?: Message;
  canonical: string;
  sha256?: string;
  digest?: string;
}

test.each(load<Digest>("digests.json").cases)("digests: $name", (given) => {
  const { value, message } = given;
  expect(canonical((value ?? message) as Value)).toBe(given.canonical);
  if (message) {
    expect(messageDigest(message)).toBe(given.digest);
  } else {
    expect(sha256(utf8(given.canonical))).toBe(given.sha256);
  }
});

interface Law {
  given: string;
  steps: { frame?: unknown; page?: unknown; ask?: string; outcome?: string; without_frames?: string }[];
  expect: Record<string, unknown>;
}

const givens = Object.assign({}, ...LAWS.map((file) => load<Law>(file).given)) as Record<string, unknown[]>;
const frameOf = (value: unknown) => readServerFrame(MSGPACK.decode(MSGPACK.encode(value))) as SessionFrame;

const word = (outcome: Outcome): string => (outcome === "reset" ? "applied" : outcome);

function step(replica: Replica, { ask, page, frame }: Law["steps"][number]): string | undefined {
  if (ask) {
    return undefined; // it keeps no frames: an answer stands where its version is
  }
  return page ? replica.mergePage(readResult("messages", page)) : word(replica.apply(frameOf(frame)));
}

const view = (replica: Replica): Record<string, unknown> => ({
  messages: replica.messages(),
  last: replica.version,
  epoch: replica.epoch,
  durable: replica.durable,
  from_sequence: replica.fromSequence ?? null,
  has_more: replica.hasMore,
  turns: Object.fromEntries(replica.turns),
  session: replica.session,
});

describe.each(LAWS)("%s", (file) => {
  test.each(load<Law>(file).cases)("$name", (given) => {
    const replica = new Replica("s");
    for (const frame of givens[given.given] ?? []) {
      expect(word(replica.apply(frameOf(frame)))).toBe("applied");
    }
    for (const one of given.steps) {
      const before = view(replica);
      const outcome = step(replica, one);
      expect(outcome).toBe(one.without_frames ?? one.outcome);
      if (outcome && outcome !== "applied") {
        expect(view(replica)).toEqual(before);
      }
      if (one.without_frames && one.without_frames !== one.outcome) {
        return; // the case ends here for a client that keeps no frames
      }
    }
    expect(view(replica)).toMatchObject(given.expect);
    expect(replica.messages()).toEqual(given.expect.messages ?? replica.messages());
  });
});
