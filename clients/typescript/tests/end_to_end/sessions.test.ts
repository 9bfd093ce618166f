/** The list of sessions against the real server, over real sockets. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { Client, type SocketMaker, systemEnvironment } from "../../src/index.js";
import { type SessionList, watchSessions } from "../../src/sessions.js";
import { hasServer, ServerProcess } from "./server.js";

const PATIENCE_MS = 30_000;

/** Wait until something that the list shows has made a fact true. */
function until(list: SessionList, fact: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const patience = setTimeout(
      () => reject(new Error(`not in time: ${JSON.stringify(list.items)} ${list.state}`)),
      PATIENCE_MS,
    );
    const look = () => {
      if (fact()) {
        clearTimeout(patience);
        stop();
        resolve();
      }
    };
    const stop = list.subscribe(look);
    look();
  });
}

const titles = (list: SessionList): (string | undefined)[] => list.items.map((item) => item.title);

describe.skipIf(!hasServer)("a list at a real server", { timeout: 60_000 }, () => {
  let server: ServerProcess;
  const clients: Client[] = [];

  const connect = (encoding: "msgpack" | "json" = "msgpack"): Client => {
    const environment = systemEnvironment(WebSocket as unknown as SocketMaker);
    const client = new Client(server.url, { environment, encoding, policy: { backoffLimitMs: 300 } });
    clients.push(client);
    return client;
  };

  beforeEach(async () => {
    server = await ServerProcess.start(1);
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) {
      client.close();
    }
    await server.remove();
  });

  test.each(["msgpack", "json"] as const)(
    "everything that another client does is shown, without being asked for: %s",
    async (encoding) => {
      const list = watchSessions(connect(encoding));
      const archive = watchSessions(connect(encoding), { archived: true });
      await until(list, () => list.state === "live");
      await until(archive, () => archive.state === "live");
      const writer = connect();
      await writer.create({ sessionId: "a", title: "A" });
      const session = await writer.session("a");
      await writer.create({ sessionId: "b", title: "B" });
      await until(list, () => titles(list).join() === "B,A");
      const b = list.items[0];
      await session.update({ title: "A too" });
      await until(list, () => titles(list).join() === "A too,B");
      expect(list.items[1]).toBe(b);
      const turn = await session.prompt("long");
      await until(list, () => list.items[0]?.running_turn_id !== undefined);
      await session.stop();
      await turn.finished(PATIENCE_MS);
      await until(list, () => list.items[0]?.running_turn_id === undefined);
      await session.archive();
      await until(list, () => titles(list).join() === "B");
      await until(archive, () => titles(archive).join() === "A too");
      await session.delete();
      await until(archive, () => archive.items.length === 0);
      expect(list.items).toEqual(await writer.sessions());
    },
  );

  test("kill -9 in mid-turn: the badge of the running turn goes away by itself, and what went meanwhile is gone", async () => {
    const client = connect();
    const list = watchSessions(client);
    const session = await client.session("s", { create: true });
    await client.create({ sessionId: "gone" });
    await session.prompt("long");
    await until(list, () => list.items.some((item) => item.running_turn_id));
    await server.kill();
    await until(list, () => list.state === "offline");
    expect(list.items.length).toBe(2);
    await server.begin();
    await until(list, () => list.state === "live");
    expect(list.items.map((item) => item.running_turn_id)).toEqual([undefined, undefined]);
    expect(list.items).toEqual(await client.sessions());
  });

  test("pages under a watch reach every session, while others move up", async () => {
    const client = connect();
    for (let number = 0; number < 25; number++) {
      await client.create({ sessionId: `s${number}` });
    }
    const list = watchSessions(client, { limit: 5 });
    await until(list, () => list.state === "live");
    for (let number = 0; list.hasMore; number++) {
      const moved = await client.session(`s${number}`);
      await Promise.all([list.loadMore(), moved.update({ title: `moved ${number}` })]);
    }
    const expected = await client.sessions(200);
    await until(list, () => JSON.stringify(list.items) === JSON.stringify(expected));
    expect(list.items.length).toBe(25);
  });
});
