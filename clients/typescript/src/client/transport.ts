/** One WebSocket connection: frames in, frames out. It decides nothing (SPEC 3). */
import { ChunkAssembler, chunks, sizeOf } from "../protocol/chunks.js";
import type { Codec, Payload } from "../protocol/codec.js";
import { MidstreamError } from "../protocol/errors.js";
import { readServerFrame, type ServerFrame } from "../protocol/frames.js";
import { DEFAULT_LIMITS } from "../protocol/limits.js";
import type { Socket } from "./environment.js";
import { connectionRejected, incompatibleServer } from "./errors.js";
import { comesBack } from "./reconnect.js";

/** Bytes of a frame from the server, chunks joined: one message may have 32 MiB, a sync several. */
export const MAX_FRAME_BYTES = 256 * 1024 * 1024;

/** How a connection ended; `final` is the reason never to try again as things are. */
export interface LinkEnd {
  readonly why: string;
  readonly final?: MidstreamError;
  /** The server's close code. */
  readonly code?: number;
  /** What came could not be read in this encoding. */
  readonly isUnreadable?: boolean;
}

/** Who is told what happens on a connection; after `ended` nothing more comes. */
export interface TransportUser {
  opened(): void;
  /** A frame, or undefined for a sign of life that is none. */
  received(frame: ServerFrame | undefined): void;
  ended(end: LinkEnd): void;
}

interface CloseEvent {
  readonly code?: number;
  readonly reason?: string;
}

export class Transport {
  readonly #socket: Socket;
  readonly #codec: Codec;
  readonly #user: TransportUser;
  /** Frames above it are sent in chunks; the server's `welcome` may say otherwise. */
  chunkBytes = DEFAULT_LIMITS.chunk_bytes;
  readonly #assembler: ChunkAssembler;
  #chunked = 0;
  #problem = "";
  #isOver = false;

  constructor(socket: Socket, codec: Codec, maxFrameBytes: number, user: TransportUser) {
    this.#socket = socket;
    this.#codec = codec;
    this.#user = user;
    this.#assembler = new ChunkAssembler(maxFrameBytes);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#open();
    socket.onmessage = (event) => this.#take(event.data);
    socket.onerror = (event: { readonly message?: string }) => {
      this.#problem = event.message ?? "";
    };
    socket.onclose = (event: CloseEvent) => this.#over(ending(event, this.#problem));
  }

  /** Send a frame; one that is too long for a WebSocket message goes in chunks. */
  send(payload: Payload): void {
    const isLong = payload.length > this.chunkBytes / 3 && sizeOf(payload) > this.chunkBytes;
    const all = isLong ? chunks(payload, this.#chunked++, this.chunkBytes, this.#codec) : [payload];
    for (const message of all) {
      this.#socket.send(message as Uint8Array<ArrayBuffer> | string);
    }
  }

  /** End it at once, without waiting for the other end, which may not be there. */
  abort(why: string): void {
    this.#over({ why });
  }

  #open(): void {
    if (this.#socket.protocol === this.#codec.subprotocol) {
      this.#user.opened();
    } else {
      const why = `The server does not speak ${this.#codec.subprotocol}.`;
      this.#over({ why, final: incompatibleServer(why) });
    }
  }

  #take(data: ArrayBuffer | string): void {
    let frame: ServerFrame | undefined;
    try {
      frame = this.#read(typeof data === "string" ? data : new Uint8Array(data));
      if (frame?.tag === "chunk") {
        const whole = this.#assembler.feed(frame);
        frame = whole === undefined ? undefined : this.#read(whole);
      }
    } catch (error) {
      if (!(error instanceof MidstreamError)) {
        throw error;
      }
      // what is too long now is too long the next time; anything else may be a passing fault
      const final = error.code === "limit_exceeded" ? { final: error } : { isUnreadable: true };
      this.#over({ why: `unreadable: ${error.message}`, ...final });
      return;
    }
    this.#user.received(frame);
  }

  #read(data: Payload): ServerFrame | undefined {
    return readServerFrame(this.#codec.decode(data));
  }

  #over(end: LinkEnd): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    const socket = this.#socket;
    // a socket of ws throws what nobody listens to
    socket.onerror = () => undefined;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#user.ended(end);
  }
}

function ending({ code = 1006, reason = "" }: CloseEvent, problem: string): LinkEnd {
  if (comesBack(code)) {
    return { why: `the connection ended (${[code, reason, problem].filter(Boolean).join(", ")})` };
  }
  const rejected = connectionRejected(code, reason);
  return { why: rejected.message, final: rejected, code };
}
