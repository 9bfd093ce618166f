/** A WebSocket whose link can be cut, frozen and delayed, and whose bytes are counted. */
import type { Socket } from "midstream-client";
import { type Clock, type Passage, Wire } from "./wire.js";

/** What a socket asks of the link that it runs over. */
export interface SocketLink extends Clock {
  readonly passage: () => Passage;
  /** Bytes of a message that reached the page. */
  received(bytes: number): void;
  /** The socket is no more. */
  gone(socket: LabSocket): void;
}

type Handler<E> = ((event: E) => unknown) | null;
/** What a browser says of a connection that was lost. */
const LOST = { code: 1006, reason: "" };

export class LabSocket implements Socket {
  onopen: Handler<never> = null;
  onmessage: Handler<{ data: never }> = null;
  onclose: Handler<never> = null;
  onerror: Handler<never> = null;
  readonly #real: Socket | undefined;
  readonly #link: SocketLink;
  readonly #inward: Wire;
  readonly #outward: Wire;
  #isOver = false;

  /** Without a real socket there is no way to the server: it never opens, and is lost at once. */
  constructor(real: Socket | undefined, link: SocketLink) {
    this.#real = real;
    this.#link = link;
    this.#inward = new Wire(link, link.passage);
    this.#outward = new Wire(link, link.passage);
    if (!real) {
      link.later(0, () => this.lose());
      return;
    }
    real.onopen = () => this.#inward.put(() => this.onopen?.(undefined as never));
    real.onmessage = (event) => this.#inward.put(() => this.#receive(event.data));
    real.onclose = (event) => this.#inward.put(() => this.#over(event));
  }

  get binaryType(): string {
    return this.#real?.binaryType ?? "arraybuffer";
  }

  set binaryType(type: string) {
    if (this.#real) {
      this.#real.binaryType = type;
    }
  }

  get protocol(): string {
    return this.#real?.protocol ?? "";
  }

  send(data: Uint8Array<ArrayBuffer> | string): void {
    this.#outward.put(() => this.#real?.send(data));
  }

  close(code?: number): void {
    this.#leave();
    this.#real?.close(code);
  }

  /** Let through what was held, as far as the link now allows. */
  pump(): void {
    this.#inward.pump();
    this.#outward.pump();
  }

  /** Lose the connection, as if somebody had pulled the cable: neither end says good-bye. */
  lose(): void {
    this.#over(LOST as never);
    this.#real?.close();
  }

  #receive(data: ArrayBuffer | string): void {
    this.#link.received(typeof data === "string" ? data.length : data.byteLength);
    this.onmessage?.({ data: data as never });
  }

  #over(event: never): void {
    if (!this.#isOver) {
      this.#leave();
      this.onclose?.(event);
    }
  }

  #leave(): void {
    this.#isOver = true;
    this.#inward.clear();
    this.#outward.clear();
    if (this.#real) {
      this.#real.onopen = this.#real.onmessage = this.#real.onclose = null;
    }
    this.#link.gone(this);
  }
}
