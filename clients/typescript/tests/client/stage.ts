/** A client on a stage: time is virtual, sockets are scripted, chance is fixed. */
// what the client loads when it is first needed must be there at once, since time is virtual
import "../../src/client/requests.js";
import "../../src/client/tokens.js";
import "../../src/client/verify.js";
import { Client, type ClientOptions, type Environment, type News, type Socket } from "../../src/index.js";

type Frame = readonly unknown[];
type Map_ = Record<string, unknown>;

/** A WebSocket whose other end is the test. It speaks JSON. */
export class FakeSocket implements Socket {
  binaryType = "";
  protocol = "";
  onopen: ((event: never) => unknown) | null = null;
  onmessage: ((event: { data: never }) => unknown) | null = null;
  onclose: ((event: never) => unknown) | null = null;
  onerror: ((event: never) => unknown) | null = null;
  /** What the client sent, in order. */
  readonly sent: Frame[] = [];
  isClosed = false;

  constructor(
    readonly url: string,
    readonly subprotocols: readonly string[],
  ) {}

  send(data: string | Uint8Array): void {
    this.sent.push(JSON.parse(String(data)) as Frame);
  }

  close(): void {
    this.isClosed = true;
  }

  open(): void {
    this.protocol = this.subprotocols[0] ?? "";
    this.onopen?.({} as never);
  }

  say(...frame: Frame): void {
    this.onmessage?.({ data: JSON.stringify(frame) as never });
  }

  end(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason } as never);
  }

  /** Greet the client. */
  welcome(heartbeat_ms = 15_000, more: Map_ = {}): void {
    this.open();
    this.say("welcome", { heartbeat_ms, limits: {}, connection_id: "c", scopes: [], ...more });
  }

  /** The calls of a method: their ids and params. */
  calls(method: string): { id: number; params: Map_ }[] {
    return this.sent
      .filter((frame) => frame[0] === "call" && frame[2] === method)
      .map(([, id, , params]) => ({ id: id as number, params: params as Map_ }));
  }

  /** The newest call of a method. */
  call(method: string): { id: number; params: Map_ } {
    const call = this.calls(method).at(-1);
    if (!call) {
      throw new Error(`${method} was not called; sent: ${JSON.stringify(this.sent)}`);
    }
    return call;
  }

  answer(method: string, result: Map_): void {
    this.say("result", this.call(method).id, result);
  }

  refuse(method: string, code: string, retryable = false, details: Map_ = {}): void {
    this.say("error", this.call(method).id, { code, message: code, retryable, details });
  }

  tags(): unknown[] {
    return this.sent.map(([tag]) => tag);
  }
}

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** Let everything that waits for nothing but its turn have it. */
export const settle = async (): Promise<void> => {
  for (let round = 0; round < 5; round++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
};

/** Chances that were drawn, on all stages. */
let drawn = 0;

export class Stage {
  now = 1000;
  /** How far the wall clock is ahead of the other. */
  wallAhead = 1_700_000_000_000;
  chance = 0.5;
  readonly sockets: FakeSocket[] = [];
  readonly environment: Environment;
  private timers: Timer[] = [];
  private listener: (news: News) => void = () => undefined;

  constructor() {
    this.environment = {
      now: () => this.now,
      wallMs: () => this.now + this.wallAhead,
      random: () => this.chance - drawn++ * 1e-9, // nearly the same, and never twice: ids are made of it
      later: (ms, callback) => {
        const timer = { at: this.now + ms, callback };
        this.timers.push(timer);
        return () => {
          this.timers = this.timers.filter((other) => other !== timer);
        };
      },
      socket: (url, subprotocols) => {
        const socket = new FakeSocket(url, subprotocols);
        this.sockets.push(socket);
        return socket;
      },
      watch: (listener) => {
        this.listener = listener;
        return () => {
          this.listener = () => undefined;
        };
      },
    };
  }

  client(options: ClientOptions = {}): Client {
    return new Client("ws://stage", { environment: this.environment, encoding: "json", ...options });
  }

  /** The newest socket. */
  get socket(): FakeSocket {
    const socket = this.sockets.at(-1);
    if (!socket) {
      throw new Error("no socket was opened");
    }
    return socket;
  }

  /** Let so many ms go by; timers fire in order, each at its time. */
  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      await settle();
      const due = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) {
        break;
      }
      this.timers = this.timers.filter((timer) => timer !== due);
      this.now = Math.max(this.now, due.at);
      due.callback();
    }
    this.now = end;
    await settle();
  }

  /** Time goes by and nobody is called: the page is frozen, or the machine sleeps. */
  freeze(ms: number): void {
    this.now += ms;
  }

  async news(news: News): Promise<void> {
    this.listener(news);
    await settle();
  }
}

export const info = (revision: number, more: Map_ = {}): Map_ => ({
  session_id: "s",
  revision,
  created_at: 1,
  updated_at: 1,
  message_count: 0,
  ...more,
});

export const userMessage = (sequence: number, revision: number, text: string, more: Map_ = {}): Map_ => ({
  message_id: `m${sequence}`,
  session_id: "s",
  sequence,
  revision,
  role: "user",
  visibility: "visible",
  created_at: 100,
  updated_at: 100,
  part_count: 1,
  parts: [{ type: "text", part_id: `p${sequence}`, sequence: 1, text }],
  ...more,
});

/** An agent's message that streams. */
export const agentMessage = (sequence: number, revision: number, text: string): Map_ =>
  userMessage(sequence, revision, "", {
    role: "agent",
    state: "streaming",
    parts: [{ type: "text", part_id: `p${sequence}`, sequence: 1, text, state: "streaming" }],
  });

export const reset = (version: number, messages: Map_[], session: Map_ = info(version)): Map_ => ({
  mode: "reset",
  epoch: "e1",
  version,
  session: { ...session, message_count: messages.length },
  messages,
  has_more: false,
});

/** A client with a live session `s`, which has one streaming message at version 5. */
export async function liveStage(options: ClientOptions = {}) {
  const stage = new Stage();
  const client = stage.client(options);
  const session = client.open("s");
  await settle();
  stage.socket.welcome();
  await settle();
  stage.socket.answer("subscribe", { channel: 7, sync: reset(5, [agentMessage(1, 5, "Hell")]) });
  await settle();
  return { stage, client, session, socket: stage.socket };
}
