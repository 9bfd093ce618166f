/** Staying connected, noticing that one is not, and coming back (SPEC 4.7). */
import { expect, test, vi } from "vitest";
import { JSON_CODEC } from "../../src/index.js";
import { liveStage, Stage, settle } from "./stage.js";

/** Answer the newest ping of the client. */
const pong = (socket: { sent: readonly (readonly unknown[])[]; say(...frame: unknown[]): void }) => {
  const ping = socket.sent.filter(([tag]) => tag === "ping").at(-1);
  socket.say("pong", ping?.[1], 0);
};

test("a ping is answered at once", async () => {
  const { stage, socket } = await liveStage();
  socket.say("ping", 42);
  expect(socket.sent.at(-1)).toEqual(["pong", 42, stage.environment.wallMs()]);
});

test("silence for one heartbeat asks, for two ends the connection", async () => {
  const { stage, client, socket } = await liveStage();
  await stage.advance(14_999);
  expect(socket.tags()).not.toContain("ping");
  await stage.advance(1);
  expect(socket.tags()).toContain("ping");
  await stage.advance(14_999);
  expect(client.state).toBe("live");
  await stage.advance(1);
  expect(client.state).toBe("offline");
  expect(socket.isClosed).toBe(true);
});

test("a client that only listens speaks once a heartbeat", async () => {
  const { stage, client, socket } = await liveStage();
  for (let count = 0; count < 6; count++) {
    await stage.advance(5000);
    socket.say("mark", 7, 5);
  }
  expect(client.state).toBe("live");
  expect(socket.tags().filter((tag) => tag === "ping").length).toBe(2);
});

test("pauses grow from half a second to thirty, and begin anew after a good connection", async () => {
  const stage = new Stage();
  stage.chance = 0.999_999;
  const client = stage.client();
  client.connect();
  await settle();
  const pauses: number[] = [];
  for (let count = 0; count < 9; count++) {
    const before = stage.now;
    const opened = stage.sockets.length;
    stage.socket.end();
    while (stage.sockets.length === opened) {
      await stage.advance(100);
    }
    pauses.push(Math.round((stage.now - before) / 100) / 10);
  }
  expect(pauses).toEqual([0.5, 1, 2, 4, 8, 16, 30, 30, 30]);
  stage.socket.welcome();
  await stage.advance(10_000);
  stage.socket.end();
  await stage.advance(500);
  expect(stage.sockets.length).toBe(11);
});

test("an attempt that is not answered in ten seconds is given up", async () => {
  const stage = new Stage();
  const client = stage.client();
  client.connect();
  await stage.advance(9999);
  expect(stage.socket.isClosed).toBe(false);
  await stage.advance(1);
  expect(stage.socket.isClosed).toBe(true);
  expect(client.state).toBe("offline");
  expect(client.problem).toContain("no answer");
});

test("a goaway is followed when it says, and not before", async () => {
  const { stage, client, socket } = await liveStage();
  socket.say("goaway", "draining", 3000);
  expect(client.state).toBe("live");
  socket.end(4000);
  await stage.advance(2999);
  expect(stage.sockets.length).toBe(1);
  await stage.advance(1);
  expect(stage.sockets.length).toBe(2);
});

test.each([4500, 4503, 4504])("a close with %i is final, and says why", async (code) => {
  const { stage, client, session, socket } = await liveStage();
  socket.end(code, "because");
  expect(client.state).toBe("closed");
  expect(session.error).toMatchObject({ code: "connection_rejected", details: { close_code: code } });
  await stage.advance(60_000);
  expect(stage.sockets.length).toBe(1);
  expect(() => client.open("s")).toThrow("because");
});

test("back in the foreground, a socket that is dead is found out and replaced within a second", async () => {
  const { stage, session, socket } = await liveStage();
  stage.freeze(600_000);
  const woken = stage.now;
  await stage.news("awake");
  expect(socket.sent.at(-1)?.[0]).toBe("ping");
  await stage.advance(700);
  expect(stage.sockets.length).toBe(2);
  stage.socket.welcome();
  stage.socket.answer("subscribe", {
    channel: 8,
    sync: { mode: "catchup", from: 5, epoch: "e1", version: 6 },
  });
  expect(session.state).toBe("live");
  expect(stage.now - woken).toBeLessThanOrEqual(1000);
});

test("back in the foreground, a socket whose end comes only now is replaced at once", async () => {
  const { stage, socket } = await liveStage();
  stage.chance = 0.99;
  stage.freeze(600_000);
  await stage.news("awake");
  socket.end();
  await stage.advance(0);
  expect(stage.sockets.length).toBe(2);
  // but only once: a server that is gone is not besieged
  stage.socket.end();
  await stage.advance(400);
  expect(stage.sockets.length).toBe(2);
});

test("back in the foreground, a connection that answers is kept", async () => {
  const { stage, session, socket } = await liveStage();
  stage.freeze(600_000);
  await stage.news("awake");
  pong(socket);
  await stage.advance(10_000);
  expect(stage.sockets.length).toBe(1);
  expect(session.state).toBe("live");
});

test("over a slow link an answer is waited for as long as the last ones took, twice", async () => {
  const { stage, client, socket } = await liveStage();
  await stage.advance(15_000);
  await stage.advance(900);
  pong(socket);
  await stage.news("awake");
  await stage.advance(1700);
  expect(client.state).toBe("live");
  await stage.advance(100);
  expect(stage.sockets.length).toBe(2);
});

test("what still comes from before the sleep proves nothing for long", async () => {
  const { stage, client, socket } = await liveStage();
  await stage.news("awake");
  for (let count = 0; count < 20; count++) {
    await stage.advance(300);
    socket.say("mark", 7, 5);
  }
  expect(client.state).not.toBe("live");
});

test("back in the foreground, a pause ends at once, and so does an attempt that hangs", async () => {
  const { stage, socket } = await liveStage();
  stage.chance = 0.99;
  socket.end();
  await stage.news("awake");
  expect(stage.sockets.length).toBe(2);
  await stage.advance(800);
  await stage.news("awake");
  await stage.advance(0);
  expect(stage.sockets.length).toBe(3);
});

test("a page that goes away lets its socket go, and one that is restored connects at once", async () => {
  const { stage, client, socket } = await liveStage();
  await stage.news("away");
  expect(socket.isClosed).toBe(true);
  expect(client.state).toBe("offline");
  await stage.advance(300_000);
  expect(stage.sockets.length).toBe(1);
  await stage.news("awake");
  expect(stage.sockets.length).toBe(2);
});

test("a wall clock that jumped ahead means that the machine slept, and the connection is asked", async () => {
  const { stage, client, socket } = await liveStage();
  stage.wallAhead += 60_000;
  await stage.advance(5000);
  expect(socket.sent.at(-1)?.[0]).toBe("ping");
  await stage.advance(5000);
  expect(client.state).not.toBe("live");
  await stage.advance(0);
  expect(stage.sockets.length).toBe(2);
});

test("a timer that came late means that the program slept, though its own clock went on", async () => {
  const { stage, client, socket } = await liveStage();
  stage.freeze(60_000);
  await stage.advance(0);
  expect(socket.sent.at(-1)?.[0]).toBe("ping");
  expect(client.state).toBe("live");
});

test("what cannot be read ends the connection, and the other encoding is tried", async () => {
  const stage = new Stage();
  const client = stage.client({ encoding: "auto" });
  client.connect();
  while (!stage.sockets.length) {
    await settle();
  }
  expect(stage.socket.subprotocols).toEqual(["midstream.v1.msgpack"]);
  stage.socket.protocol = "midstream.v1.msgpack";
  stage.socket.onmessage?.({ data: new Uint8Array([0xc1]).buffer as never });
  expect(client.state).toBe("offline");
  await stage.advance(500);
  expect(stage.socket.subprotocols).toEqual([JSON_CODEC.subprotocol]);
});

test("a server that speaks another subprotocol is said to be incompatible", async () => {
  const stage = new Stage();
  const client = stage.client();
  client.connect();
  await settle();
  stage.socket.onopen?.({} as never);
  expect(client.error?.code).toBe("incompatible_server");
});

test("a frame in chunks is applied at its last piece, and one that is too long ends the client", async () => {
  const { session, socket, client } = await liveStage({ maxFrameBytes: 4000 });
  const frame = JSON.stringify(["d", 7, 6, 10, 1, 1, "o"]);
  socket.say("chunk", 1, false, frame.slice(0, 9));
  expect(session.version).toBe(5);
  socket.say("chunk", 1, true, frame.slice(9));
  expect(session.version).toBe(6);
  socket.say("chunk", 2, false, "x".repeat(5000));
  expect(client.error?.code).toBe("limit_exceeded");
});

test("a fault of the program's own listener stops nothing, and is not swallowed", async () => {
  const { client, session, socket } = await liveStage();
  const reported = vi.spyOn(Promise, "reject").mockResolvedValue(undefined as never);
  session.subscribe(() => {
    throw new Error("a bug of the program");
  });
  socket.say("d", 7, 6, 10, 1, 1, "o");
  expect(session.version).toBe(6);
  expect(client.state).toBe("live");
  expect(String(reported.mock.calls[0]?.[0])).toContain("a bug of the program");
  reported.mockRestore();
});

test("closing the client ends everything, once", async () => {
  const { stage, client, session, socket } = await liveStage();
  const waiting = session.until(() => false);
  client.close();
  client.close();
  expect([client.state, session.state, socket.isClosed]).toEqual(["closed", "closed", true]);
  await expect(waiting).rejects.toMatchObject({ code: "session_closed" });
  await expect(session.interactions()).rejects.toMatchObject({ code: "session_closed" });
  await stage.advance(60_000);
  expect(stage.sockets.length).toBe(1);
});

test("a client that finds no server says what is in the way", async () => {
  const stage = new Stage();
  const client = stage.client();
  const session = client.session("s", { timeoutMs: 2000 });
  const refused = expect(session).rejects.toMatchObject({ code: "timed_out" });
  await settle();
  stage.socket.end();
  expect(client.problem).toContain("1006");
  await stage.advance(2000);
  await refused;
});
