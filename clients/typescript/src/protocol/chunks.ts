/** Chunks: a long frame in pieces, in both directions (SPEC 3.3). */
import { isUnicode, utf8Length } from "./bytes.js";
import type { Codec, Payload } from "./codec.js";
import { invalid, limitExceeded } from "./errors.js";
import type { Chunk } from "./frames.js";

/** Bytes of a chunk frame around its piece, at most. */
const OVERHEAD = 32;

/** Return how many bytes a payload has on the wire. */
export const sizeOf = (payload: Payload): number =>
  typeof payload === "string" ? utf8Length(payload) : payload.length;

/** Return the encoded chunks of an encoded frame, each of at most `chunkBytes` bytes. */
export function chunks(payload: Payload, n: number, chunkBytes: number, codec: Codec): Payload[] {
  const made: Payload[] = [];
  const isText = typeof payload === "string";
  // a character of JSON has at most three bytes a UTF-16 unit, and those that are escaped take two for one
  const size = isText ? Math.floor((chunkBytes - OVERHEAD) / 3) : chunkBytes - OVERHEAD;
  for (let start = 0; start < payload.length; ) {
    let end = Math.min(start + size, payload.length);
    if (isText && end < payload.length && (payload.charCodeAt(end) & 0xfc00) === 0xdc00) {
      end--; // between code points only
    }
    const piece = isText ? payload.slice(start, end) : payload.subarray(start, end);
    made.push(codec.encode(["chunk", n, end === payload.length, piece]));
    start = end;
  }
  return made;
}

/** Joins the chunks of one connection; holds at most `limit` bytes of pieces. */
export class ChunkAssembler {
  readonly #limit: number;
  readonly #open = new Map<number, { pieces: Payload[]; bytes: number }>();
  #highest = -1;
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Take a chunk and return its frame, still encoded, if it was the last piece.
   *
   * @throws MidstreamError `limit_exceeded`: the frame is too long and was given up.
   */
  feed(chunk: Chunk): Payload | undefined {
    const { n, piece } = chunk;
    if (n > this.#highest) {
      this.#highest = n;
      this.#open.set(n, { pieces: [], bytes: 0 });
    }
    const frame = this.#open.get(n);
    if (!frame) {
      return undefined; // of a frame that is done, or was given up
    }
    const size = sizeOf(piece);
    const held = this.#held + size;
    if (held > this.#limit) {
      this.#giveUp(n);
      throw limitExceeded("frame_bytes", this.#limit, held);
    }
    frame.pieces.push(piece);
    frame.bytes += size;
    this.#held = held;
    if (!chunk.last) {
      return undefined;
    }
    this.#giveUp(n);
    return joined(frame.pieces, frame.bytes);
  }

  #giveUp(n: number): void {
    this.#held -= this.#open.get(n)?.bytes ?? 0;
    this.#open.delete(n);
  }
}

function joined(pieces: Payload[], bytes: number): Payload {
  if (typeof pieces[0] === "string") {
    const text = pieces.join("");
    if (!isUnicode(text)) {
      throw invalid("piece", "holds half a code point");
    }
    return text;
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const piece of pieces as Uint8Array[]) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
