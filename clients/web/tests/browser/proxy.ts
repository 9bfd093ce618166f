/**
 * A bad line between a browser and a server: a TCP proxy whose connections can be cut, frozen and delayed.
 *
 * It tells WebSockets from other requests by their first bytes, so that a page can be loaded while its
 * socket cannot be opened.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

/** What a connection carries. */
export type Kind = "socket" | "request";

/** One connection through the proxy. */
export class Line {
  /** Bytes that were passed on to the client. */
  toClient = 0;
  /** Bytes that were passed on to the server. */
  toServer = 0;
  isFrozen = false;
  isOpen = true;
  readonly #ends: readonly [Socket, Socket];

  constructor(
    readonly kind: Kind,
    client: Socket,
    server: Socket,
    first: Buffer,
    delayMs: () => number,
  ) {
    this.#ends = [client, server];
    const pass = (from: Socket, to: Socket, count: (bytes: number) => void) => {
      const carry = (act: () => void) => {
        const ms = delayMs();
        // one timer each, all of the same length: nothing overtakes
        ms > 0 ? setTimeout(act, ms) : act();
      };
      const write = (data: Buffer) =>
        carry(() => {
          if (this.isOpen && !this.isFrozen) {
            count(data.length);
            to.write(data);
          }
        });
      from.on("data", write);
      from.on("end", () => carry(() => this.isFrozen || to.end()));
      // a peer that died takes its other half along, unless the line is dead: then nobody learns of it
      from.on("close", (failed) => {
        if (!this.isFrozen) {
          carry(() => (failed ? this.cut() : this.#endedBy(to)));
        }
      });
      from.on("error", () => undefined);
      return write;
    };
    const write = pass(client, server, (bytes) => {
      this.toServer += bytes;
    });
    pass(server, client, (bytes) => {
      this.toClient += bytes;
    });
    write(first);
  }

  #endedBy(other: Socket): void {
    other.end();
    this.isOpen &&= !other.destroyed;
  }

  /** From now on nothing gets through, and neither end learns of it: a half-open connection. */
  freeze(): void {
    this.isFrozen = true;
  }

  /** End it as a router does that forgot the connection: both ends get a reset. */
  cut(): void {
    if (this.isOpen) {
      this.isOpen = false;
      for (const end of this.#ends) {
        end.destroyed || end.resetAndDestroy();
      }
    }
  }
}

export class LinkProxy {
  /** All lines that there ever were, in the order of their beginning. */
  readonly lines: Line[] = [];
  /** How long each piece takes, in each direction. */
  delayMs = 0;
  readonly #down = new Set<Kind>();
  readonly #clients = new Set<Socket>();
  #isBlackHole = false;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  /** Where a browser finds the page through the proxy. */
  get pageUrl(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Stand in front of a port of this machine. */
  static async start(port: number): Promise<LinkProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const proxy = new LinkProxy(server, typeof address === "object" && address ? address.port : 0);
    server.on("connection", (client) => proxy.#take(client, port));
    return proxy;
  }

  /** The lines of this kind that are open. */
  open(kind: Kind): Line[] {
    return this.lines.filter((line) => line.isOpen && line.kind === kind);
  }

  /** Bytes that went to the client over all WebSockets. */
  get received(): number {
    return this.lines.reduce((sum, line) => sum + (line.kind === "socket" ? line.toClient : 0), 0);
  }

  /** Cut the lines of these kinds, and every new one until `heal`. */
  cut(...kinds: Kind[]): void {
    for (const kind of kinds) {
      this.#down.add(kind);
      for (const line of this.open(kind)) {
        line.cut();
      }
    }
  }

  /** Freeze the lines that are open; new ones work. */
  freeze(): void {
    for (const line of this.lines) {
      line.freeze();
    }
  }

  /** Freeze the lines that are open, and let new ones connect to nothing, until `heal`. */
  swallow(): void {
    this.freeze();
    this.#isBlackHole = true;
  }

  /** New lines work again. */
  heal(): void {
    this.#down.clear();
    this.#isBlackHole = false;
  }

  async close(): Promise<void> {
    for (const line of this.lines) {
      line.cut();
    }
    for (const client of this.#clients) {
      client.destroy(); // some never said anything
    }
    await new Promise((resolve) => this.server.close(resolve));
  }

  #take(client: Socket, port: number): void {
    this.#clients.add(client);
    client.on("error", () => undefined);
    client.on("close", () => this.#clients.delete(client));
    if (this.#isBlackHole) {
      return;
    }
    client.once("data", (first) => {
      client.pause();
      const kind = /^upgrade:\s*websocket/im.test(first.toString("latin1")) ? "socket" : "request";
      if (this.#down.has(kind)) {
        client.resetAndDestroy();
        return;
      }
      const server = connect(port, "127.0.0.1", () => client.resume());
      this.lines.push(new Line(kind, client, server, first, () => this.delayMs));
    });
  }
}
