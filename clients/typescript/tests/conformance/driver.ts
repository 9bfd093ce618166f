/**
 * The client behind the lines of JSON of docs/conformance.md: reads instructions, prints answers.
 * `node scripts/conformance.mjs` bundles and runs it.
 */
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import {
  Client,
  type Encoding,
  MidstreamError,
  messageDigest,
  type Session,
  type SocketMaker,
  systemEnvironment,
  type TurnHandle,
} from "../../src/index.js";
import { type SessionList, watchSessions } from "../../src/sessions.js";

const CAN = ["scale", "internal", "pages", "verify", "respond", "stop", "list", "tokens"];
const TIMES = { backoffMs: 500, backoffLimitMs: 30_000, stableMs: 10_000 };

interface Told {
  readonly id: number;
  readonly do: string;
  readonly session: string;
  readonly [name: string]: unknown;
}

/** One client, from `connect` to `close`. */
class UnderTest {
  readonly #client: Client;
  readonly #sessions = new Map<string, Session>();
  readonly #handles = new Map<string, Map<string, TurnHandle>>();
  #list: SessionList | undefined;

  /** Of `tokens` the next is used whenever one is needed, and the last from then on. */
  constructor(url: string, encoding: Encoding, scale: number, tokens: string[]) {
    const policy = Object.fromEntries(Object.entries(TIMES).map(([name, ms]) => [name, ms * scale]));
    const environment = systemEnvironment(WebSocket as unknown as SocketMaker);
    const token = tokens.length ? () => (tokens.length > 1 && tokens.shift()) || (tokens[0] as string) : null;
    this.#client = new Client(url, { encoding, policy, environment, token });
    this.#client.connect();
  }

  open(told: Told): unknown {
    const { session, limit, create, include_internal } = told;
    const options = {
      limit: Number(limit),
      create: Boolean(create),
      includeInternal: Boolean(include_internal),
    };
    this.#sessions.set(session, this.#client.open(session, options));
    return {};
  }

  async state(told: Told): Promise<unknown> {
    const session = this.#session(told);
    const handles = [...(this.#handles.get(told.session) ?? [])];
    const shown = {
      state: session.state,
      link: this.#client.state,
      error: (session.error ?? this.#client.error)?.code ?? null,
      prompts: Object.fromEntries(handles.map(([name, handle]) => [name, handle.state])),
    };
    const { info, version, cursor, hasEarlier, messages } = session;
    const turns = [...session.turns.values()];
    if (!info) {
      return shown;
    }
    const digests = await Promise.all(
      messages.map(async (one) => [one.sequence, one.revision, await messageDigest(one)]),
    );
    return {
      ...shown,
      version,
      epoch: cursor?.epoch ?? null,
      has_earlier: hasEarlier,
      session: info,
      turns,
      digests,
    };
  }

  async page(told: Told): Promise<unknown> {
    return { more: await this.#session(told).loadEarlier(Number(told.limit)) };
  }

  async verify(told: Told): Promise<unknown> {
    return { equal: (await this.#session(told).verify()).isEqual };
  }

  async prompt(told: Told): Promise<unknown> {
    const messageId = String(told.message_id);
    const handle = await this.#session(told).prompt(String(told.text), { messageId });
    const handles = this.#handles.get(told.session) ?? new Map<string, TurnHandle>();
    this.#handles.set(told.session, handles.set(messageId, handle));
    return {};
  }

  async respond(told: Told): Promise<unknown> {
    await this.#session(told).approve(String(told.interaction_id));
    return {};
  }

  async stop(told: Told): Promise<unknown> {
    const { stopped } = await this.#session(told).stop(String(told.turn_id));
    return { stopped };
  }

  leave(told: Told): unknown {
    this.#session(told).close();
    return {};
  }

  watch(told: Told): unknown {
    this.#list = watchSessions(this.#client, { limit: Number(told.limit) });
    return {};
  }

  list(): unknown {
    const items = this.#list?.items.map((one) => [one.session_id, one.revision]) ?? [];
    return { state: this.#list?.state ?? "closed", items };
  }

  async more(): Promise<unknown> {
    return { more: await this.#list?.loadMore() };
  }

  close(): unknown {
    this.#client.close();
    return {};
  }

  #session(told: Told): Session {
    const session = this.#sessions.get(told.session);
    if (!session) {
      throw new MidstreamError("client", `The session ${told.session} is not open.`);
    }
    return session;
  }
}

let client: UnderTest | undefined;

async function carryOut(told: Told): Promise<unknown> {
  if (told.do === "connect") {
    client = new UnderTest(
      String(told.url),
      told.encoding as Encoding,
      Number(told.scale),
      told.tokens as string[],
    );
    return {};
  }
  const carry = client?.[told.do as keyof UnderTest] as ((told: Told) => unknown) | undefined;
  const done = await carry?.call(client, told);
  client = told.do === "close" ? undefined : client;
  return done ?? {};
}

const say = (answer: unknown) => process.stdout.write(`${JSON.stringify(answer)}\n`);

/** Serve until the input ends. */
export async function serve(): Promise<void> {
  say({ ready: "midstream-client (TypeScript)", can: CAN });
  for await (const line of createInterface({ input: process.stdin })) {
    const told = JSON.parse(line) as Told;
    carryOut(told).then(
      (ok) => say({ id: told.id, ok }),
      (error: unknown) =>
        say({ id: told.id, error: error instanceof MidstreamError ? error.code : String(error) }),
    );
  }
}
