/**
 * Tells the agent of the tests what to do. What an agent does is seen by a page only when a test asked for it,
 * so a test stops a turn at any place, and goes on from there, without waiting for time to pass.
 */
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** Where the agent is, for `PYTHONPATH`, and its name for `midstream serve --agent`. */
export const AGENT_FOLDER = dirname(fileURLToPath(import.meta.url));
export const AGENT = "directed_agent:directed";

interface Begun {
  readonly session: string;
  readonly turn: string;
  readonly prompt: string;
}

/** One turn, as the agent that runs it sees it. */
export class DirectedTurn {
  readonly sessionId: string;
  readonly prompt: string;
  /** Resolves when the turn is over for the agent, however it ended. */
  readonly ended: Promise<void>;
  readonly #socket: Socket;
  readonly #waiting: ((said: unknown) => void)[] = [];

  constructor(begun: Begun, socket: Socket, lines: AsyncIterator<string>) {
    this.sessionId = begun.session;
    this.prompt = begun.prompt;
    this.#socket = socket;
    this.ended = this.#read(lines);
  }

  async #read(lines: AsyncIterator<string>): Promise<void> {
    for (let line = await lines.next(); !line.done; line = await lines.next()) {
      this.#waiting.shift()?.(JSON.parse(line.value));
    }
  }

  /** Resolves to what came of it; never, where the turn ended before. */
  #do(order: Readonly<Record<string, unknown>>): Promise<unknown> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#socket.write(`${JSON.stringify(order)}\n`);
    });
  }

  /** Append to the text that grows. */
  say = (text: string) => this.#do({ do: "say", text });
  think = (text: string) => this.#do({ do: "think", text });
  /** End the step, which is stored then. */
  commit = () => this.#do({ do: "commit" });
  /** Take what was typed meanwhile; resolves to how many messages it was. */
  inputs = () => this.#do({ do: "inputs" });
  tool = (name: string, title: string, input?: unknown) => this.#do({ do: "tool", name, title, input });
  toolInput = (text: string) => this.#do({ do: "move", to: "input", text });
  toolReady = (input: unknown) => this.#do({ do: "move", to: "ready", input });
  toolRuns = () => this.#do({ do: "move", to: "running" });
  toolDone = (output: unknown) => this.#do({ do: "move", to: "completed", output });
  toolFails = (error: string) => this.#do({ do: "move", to: "failed", error });
  /** Resolves when somebody has answered. */
  approval = (title: string, description?: string) => this.#do({ do: "approval", title, description });
  ask = (title: string, question: string, options?: readonly string[]) =>
    this.#do({ do: "ask", title, question, options });
  file = (first: string, second: string, name: string) =>
    this.#do({ do: "add", what: "file", first, second, name });
  source = (first: string, name: string) => this.#do({ do: "add", what: "source", first, name });
  document = (first: string, second: string, name: string) =>
    this.#do({ do: "add", what: "document", first, second, name });
  data = (first: string, data: unknown) => this.#do({ do: "add", what: "data", first, data });
  action = (title: string, description: string) => this.#do({ do: "action", title, description });
  error = (message: string) => this.#do({ do: "error", message });

  /** End the turn well. */
  async done(): Promise<void> {
    void this.#do({ do: "done" });
    await this.ended;
  }

  /** End the turn with a failure. */
  async fail(message: string): Promise<void> {
    void this.#do({ do: "fail", message });
    await this.ended;
  }
}

export class Director {
  readonly #turns: DirectedTurn[] = [];
  readonly #wanted = new Map<string, (turn: DirectedTurn) => void>();
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async start(): Promise<Director> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const director = new Director(server, typeof address === "object" && address ? address.port : 0);
    server.on("connection", (socket) => void director.#take(socket));
    return director;
  }

  /** What a server needs in its environment to find the agent, and the agent to find the director. */
  get environment(): Readonly<Record<string, string>> {
    const path = [AGENT_FOLDER, process.env.PYTHONPATH].filter(Boolean).join(":");
    return { MIDSTREAM_DIRECTOR: String(this.port), PYTHONPATH: path };
  }

  /** The turn that this prompt began, once it runs. Each turn is given out once. */
  turn(prompt: string): Promise<DirectedTurn> {
    const at = this.#turns.findIndex((turn) => turn.prompt === prompt);
    const [found] = at < 0 ? [] : this.#turns.splice(at, 1);
    return found ? Promise.resolve(found) : new Promise((resolve) => this.#wanted.set(prompt, resolve));
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #take(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on("error", () => undefined); // a killed server says good-bye to nobody
    socket.on("close", () => this.#sockets.delete(socket));
    const lines = createInterface(socket)[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.done) {
      return;
    }
    const turn = new DirectedTurn(JSON.parse(first.value), socket, lines);
    const take = this.#wanted.get(turn.prompt);
    this.#wanted.delete(turn.prompt);
    take ? take(turn) : this.#turns.push(turn);
  }
}
