/** Everything that a client asks of where it runs: time, chance, sockets, and news of the page (SPEC 4.7). */
import { MidstreamError } from "../protocol/errors.js";

/** A WebSocket, as far as a client uses it; a browser's, and that of the package `ws`. */
export interface Socket {
  binaryType: string;
  readonly protocol: string;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: { data: never }) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  send(data: Uint8Array<ArrayBuffer> | string): void;
  close(code?: number): void;
}

export type SocketMaker = new (url: string, subprotocols: string[]) => Socket;

/**
 * What happens to the program as a whole. `awake`: it is in the foreground again, or was frozen, or the
 * network changed: what the client knows of its connection may be out of date. `asleep`: it may be ended at
 * any moment now. `away`: its sockets must go (the page enters the back/forward cache).
 */
export type News = "awake" | "asleep" | "away";

export interface Environment {
  /** Ms of a clock that does not go back. */
  now(): number;
  /** Ms since the epoch; it goes on while the machine sleeps. */
  wallMs(): number;
  /** From 0 to below 1. */
  random(): number;
  /** Call back once after so many ms; the returned function takes that back. */
  later(ms: number, callback: () => void): () => void;
  /** @throws MidstreamError `unsupported`: there are no WebSockets here. */
  socket(url: string, subprotocols: string[]): Socket;
  /** Tell what happens from now on; the returned function ends that. */
  watch?(listener: (news: News) => void): () => void;
}

/** What may be found where JavaScript runs; nothing of it is taken for granted when this module loads. */
interface Globals {
  readonly WebSocket?: SocketMaker;
  readonly performance?: { now(): number };
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: never): void;
}

/** What Node, React Native and browsers have in common. `webSocket` is for Node before 22, say that of `ws`. */
export function systemEnvironment(webSocket?: SocketMaker): Environment {
  const here = globalThis as unknown as Globals;
  return {
    now: () => here.performance?.now() ?? Date.now(),
    wallMs: () => Date.now(),
    random: () => Math.random(),
    later: (ms, callback) => {
      const timer = here.setTimeout(callback, ms);
      return () => here.clearTimeout(timer as never);
    },
    socket: (url, subprotocols) => {
      const Maker = webSocket ?? here.WebSocket;
      if (!Maker) {
        throw new MidstreamError("unsupported", "No WebSocket here: give systemEnvironment one.");
      }
      return new Maker(url, subprotocols);
    },
  };
}
