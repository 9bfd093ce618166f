/** The client against the real server, over real sockets. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  Client,
  type ClientOptions,
  keepIn,
  type Mutation,
  memoryMap,
  mutations,
  type Session,
  type SocketMaker,
  systemEnvironment,
} from "../../src/index.js";
import { hasServer, ServerProcess } from "./server.js";

const PATIENCE_MS = 30_000;
const clients: Client[] = [];

function connect(server: ServerProcess, options: ClientOptions = {}): Client {
  const client = new Client(server.url, {
    environment: systemEnvironment(WebSocket as unknown as SocketMaker),
    ...options,
  });
  clients.push(client);
  return client;
}

const saidBy = (session: Session): string =>
  session.messages
    .flatMap((message) => message.parts)
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("");

/** The replica equals what a client that was never there reads, and the server says so too. */
async function expectEqual(server: ServerProcess, session: Session): Promise<void> {
  await session.untilLive(PATIENCE_MS);
  const report = await session.verify();
  expect(report.differences).toEqual([]);
  expect(report.compared).toBe(session.messages.length);
  const stranger = connect(server, { encoding: "json" });
  const fresh = await stranger.session(session.sessionId, { limit: 200 });
  await session.until(() => session.version >= fresh.version, PATIENCE_MS);
  expect(session.messages).toEqual(fresh.messages);
  expect(session.info).toEqual(fresh.info);
  stranger.close();
}

describe.skipIf(!hasServer)("a real server", { timeout: 60_000 }, () => {
  let server: ServerProcess;

  beforeAll(async () => {
    server = await ServerProcess.start(0);
  });

  afterAll(async () => {
    for (const client of clients) {
      client.close();
    }
    await server.remove();
  });

  test.each(["msgpack", "json"] as const)(
    "a prompt is answered, and the replica proves that it is right: %s",
    async (encoding) => {
      const session = await connect(server, { encoding }).session(`talk ${encoding}`, { create: true });
      const handle = await session.prompt("count these words, and a source");
      expect((await handle.accepted(PATIENCE_MS)).state).toBe("started");
      const turn = await handle.finished(PATIENCE_MS);
      expect(turn.state).toBe("completed");
      expect(handle.state).toBe("completed");
      expect(session.messages.length).toBeGreaterThanOrEqual(2);
      await expectEqual(server, session);
    },
  );

  test("mutations applied to a copy give the replica", async () => {
    const session = await connect(server).session("mutations", { create: true });
    const stream = mutations(session);
    const copies = new Map<string, { parts: { part_id: string; text?: string; input_text?: string }[] }>();
    const handle = await session.prompt("count these words, then note milk");
    await handle.finished(PATIENCE_MS);
    session.close();
    for await (const told of stream) {
      take(copies, told);
    }
    for (const message of session.messages) {
      expect(copies.get(message.message_id)?.parts).toEqual(message.parts);
    }
    expect(copies.size).toBe(session.messages.length);
  });

  test("an approval that one client gives is seen by the other", async () => {
    const one = await connect(server).session("approvals", { create: true });
    const other = await connect(server).session("approvals");
    await (await one.prompt("note buy milk")).finished(PATIENCE_MS);
    const handle = await one.prompt("delete it");
    await other.until(() => (other.info?.pending_interactions ?? 0) === 1, PATIENCE_MS);
    const [pending] = await other.interactions();
    await other.approve(pending?.interaction.interaction_id ?? "", "go on");
    expect((await handle.finished(PATIENCE_MS)).state).toBe("completed");
    const answered = one.messages
      .flatMap((message) => message.parts)
      .find((part) => part.type === "interaction");
    expect(answered).toMatchObject({ status: "resolved", resolved_by: "local" });
    await expect(one.deny(pending?.interaction.interaction_id ?? "")).rejects.toMatchObject({
      code: "interaction_closed",
    });
    await expectEqual(server, one);
  });

  test("earlier messages are loaded on demand, down to the first", async () => {
    const client = connect(server);
    const writer = await client.session("history", { create: true });
    for (let count = 0; count < 6; count++) {
      await (await writer.prompt(`message ${count}`)).finished(PATIENCE_MS);
    }
    const reader = await connect(server).session("history", { limit: 2 });
    expect(reader.messages.length).toBe(2);
    const kept = reader.messages[0];
    expect(await reader.loadEarlier(3)).toBe(true);
    expect(reader.messages.length).toBe(5);
    while (reader.hasEarlier) {
      await reader.loadEarlier();
    }
    expect(await reader.loadEarlier()).toBe(false);
    expect(reader.messages.find((message) => message.message_id === kept?.message_id)).toBe(kept);
    expect(reader.messages).toEqual(writer.messages);
  });

  test("a fork is a session of its own, and a clear empties one", async () => {
    const session = await connect(server).session("origin", { create: true });
    await (await session.prompt("hello")).finished(PATIENCE_MS);
    const fork = await session.fork({ title: "a copy" });
    expect(fork.info?.title).toBe("a copy");
    expect(saidBy(fork)).toBe(saidBy(session));
    await session.clear();
    await session.until(() => session.messages.length === 0, PATIENCE_MS);
    expect(fork.messages.length).toBeGreaterThan(0);
    await expect(connect(server).session("origin")).resolves.toMatchObject({ hasEarlier: false });
  });

  test("titles, archives, approval modes and deletes reach all who read", async () => {
    const client = connect(server);
    const session = await client.session("admin", { create: true });
    expect((await session.update({ title: "Named" })).title).toBe("Named");
    expect((await session.setApprovalMode("always-allow")).approval_mode).toBe("always-allow");
    await session.archive();
    expect((await client.sessions(10, true)).map((info) => info.session_id)).toContain("admin");
    await expect((await session.prompt("too late")).accepted(PATIENCE_MS)).rejects.toMatchObject({
      code: "refused",
    });
    await session.archive(false);
    await session.delete();
    expect(session.state).toBe("closed");
    await expect(client.session("admin")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a summary closes a segment, and segments are read one by one", async () => {
    const session = await connect(server).session("segments", { create: true });
    await (await session.prompt("hello")).finished(PATIENCE_MS);
    const made = await session.compact(session.messages.length, "They greeted.");
    expect(made).toMatchObject({ from_sequence: 1, through_sequence: 2, text: "They greeted." });
    await session.until(() => session.info?.summarized_through === 2, PATIENCE_MS);
    const active = await session.segment();
    expect(active).toMatchObject({ source: "active", items: [], summary: made, has_more: true });
    const closed = await session.segment(active.next_before_sequence);
    expect(closed).toMatchObject({ source: "segment", summary: made });
    expect(closed.items).toEqual(session.messages);
    expect((await session.verify()).isEqual).toBe(true);
  });

  test("a signal reaches the others, and a missing session is said to be missing", async () => {
    const one = await connect(server).session("signals", { create: true });
    const other = await connect(server).session("signals");
    const heard = new Promise((resolve) => other.onSignal(({ name, data }) => resolve([name, data])));
    await one.signal("typing", { on: true });
    expect(await heard).toEqual(["typing", { on: true }]);
    await expect(connect(server).session("nowhere")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a long prompt goes in chunks", async () => {
    const session = await connect(server).session("long", { create: true });
    const text = "All work and no play. Grüße 👋🏽 ".repeat(8000);
    const handle = await session.prompt([
      { type: "data", data_type: "t", data: text },
      { type: "text", text: "hi" },
    ]);
    await handle.finished(PATIENCE_MS);
    await expectEqual(server, session);
  });
});

describe.skipIf(!hasServer)("a server that is killed", { timeout: 90_000 }, () => {
  test("kill -9 in the middle of a sentence: the replica equals the server, and prompts are sent once", async () => {
    const server = await ServerProcess.start(1);
    try {
      const map = memoryMap();
      const client = connect(server, { store: keepIn(map), policy: { backoffLimitMs: 500 } });
      const session = await client.session("siege", { create: true });
      const handle = await session.prompt("long");
      await session.until(() => saidBy(session).length > 60, PATIENCE_MS);
      await server.kill();
      await session.until(() => session.state !== "live", PATIENCE_MS);
      const offline = await session.prompt("written without a server");
      expect(offline.state).toBe("pending");
      expect(session.pending.map((prompt) => prompt.message_id)).toEqual([offline.messageId]);
      client.close(); // as if the page were closed, too

      await server.begin();
      const again = connect(server, { store: keepIn(map), policy: { backoffLimitMs: 500 } });
      const shown = again.open("siege");
      await shown.restored;
      expect(shown.messages.length).toBeGreaterThan(0); // before anything came
      await shown.untilLive(PATIENCE_MS);
      expect(shown.turns.get(handle.turnId ?? "")?.state).toBe("failed");
      const resumed = shown.handle(offline.messageId);
      const turn = await (resumed?.finished(PATIENCE_MS) ?? Promise.reject(new Error("the prompt was lost")));
      expect(turn.state).toBe("completed");
      const once = shown.messages.filter((message) => message.message_id === offline.messageId);
      expect(once.length).toBe(1);
      expect(shown.pending).toEqual([]);
      await expectEqual(server, shown);
    } finally {
      await server.remove();
    }
  });
});

interface Copy {
  parts: { part_id: string; text?: string; input_text?: string }[];
}

/** What a program that only reads mutations would do. */
function take(copies: Map<string, Copy>, told: Mutation): void {
  if (told.variant === "message") {
    copies.set(told.message_id, { parts: [...told.payload.parts] });
  } else if (told.variant === "part") {
    const parts = copies.get(told.message_id)?.parts ?? [];
    parts[told.payload.sequence - 1] = told.payload;
  } else if (told.variant === "delta") {
    const parts = copies.get(told.message_id)?.parts ?? [];
    const at = parts.findIndex((part) => part.part_id === told.part_id);
    const part = parts[at] as Copy["parts"][number] & { type?: string };
    const field = part.type === "tool" ? "input_text" : "text";
    parts[at] = { ...part, [field]: (part[field] ?? "") + told.payload.text };
  }
}
