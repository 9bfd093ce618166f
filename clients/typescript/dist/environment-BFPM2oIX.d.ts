//#region src/client/environment.d.ts
/** A WebSocket, as far as a client uses it; a browser's, and that of the package `ws`. */
interface Socket {
  binaryType: string;
  readonly protocol: string;
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: {
    data: never;
  }) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  send(data: Uint8Array<ArrayBuffer> | string): void;
  close(code?: number): void;
}
type SocketMaker = new (url: string, subprotocols: string[]) => Socket;
/**
 * What happens to the program as a whole. `awake`: it is in the foreground again, or was frozen, or the
 * network changed: what the client knows of its connection may be out of date. `asleep`: it may be ended at
 * any moment now. `away`: its sockets must go (the page enters the back/forward cache).
 */
type News = "awake" | "asleep" | "away";
interface Environment {
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
/** What Node, React Native and browsers have in common. `webSocket` is for Node before 22, say that of `ws`. */
declare function systemEnvironment(webSocket?: SocketMaker): Environment;
//#endregion
export { systemEnvironment as a, SocketMaker as i, News as n, Socket as r, Environment as t };