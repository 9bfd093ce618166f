/** Subscribing, and coming back: whatever happens to the link, the replica goes on where it was (SPEC 4, 5). */
import { expect, test } from "vitest";
import { type Mutation, mutations } from "../../src/client/mutations.js";
import type { Message } from "../../src/protocol/model.js";
import { agentMessage, info, liveStage, reset, Stage, settle, userMessage } from "./stage.js";

const textOf = (session: { messages: readonly { parts: readonly object[] }[] }) =>
  session.messages
    .map(({ parts }) => parts.map((part) => (part as { text?: string }).text).join(""))
    .join("|");

const delta = (version: number, text: string) => ["d", 7, version, 10, 1, 1, text];
const CURSOR = { epoch: "e1", version: 5, durable: 5 };

test("a client greets, subscribes, and is live with the answer", async () => {
  const stage = new Stage();
  const session = stage.client({ token: "secret" }).open("s", { limit: 20 });
  expect(session.state).toBe("connecting");
  await settle();
  stage.socket.open();
  expect(stage.socket.sent).toEqual([["hello", 1, "secret", { client: "midstream-typescript" }]]);
  stage.socket.welcome();
  expect(session.state).toBe("syncing");
  expect(stage.socket.call("subscribe").params).toEqual({
    session_id: "s",
    limit: 20,
    include_internal: false,
  });
  stage.socket.answer("subscribe", { channel: 7, sync: reset(5, [agentMessage(1, 5, "Hell")]) });
  expect(session.state).toBe("live");
  stage.socket.say(...delta(6, "o"));
  expect(textOf(session)).toBe("Hello");
  expect(session.cursor).toEqual({ epoch: "e1", version: 6, durable: 5 });
});

test("a short delta goes to the last part of the last message, and says the same to those who read mutations", async () => {
  const { session, socket } = await liveStage();
  const stream = mutations(session);
  const { created_at } = session.messages[0] as Message;
  socket.say(...delta(6, "o"));
  socket.say(7, 7, 5, "!");
  socket.say(7, 8, 0, "?");
  expect(textOf(session)).toBe("Hello!?");
  expect(session.messages[0]).toMatchObject({ revision: 8, updated_at: created_at + 15 });
  session.close();
  const told: Mutation[] = [];
  for await (const mutation of stream) {
    told.push(mutation);
  }
  const same = { variant: "delta", message_id: "m1", part_id: session.messages[0]?.parts[0]?.part_id };
  expect(told).toMatchObject([
    { ...same, revision: 6, created_at: created_at + 10, payload: { text: "o" } },
    { ...same, revision: 7, created_at: created_at + 15, payload: { text: "!" } },
    { ...same, revision: 8, created_at: created_at + 15, payload: { text: "?" } },
  ]);
});

test("a short delta that is not the next is a gap, and one that cannot fit begins anew", async () => {
  const { session, socket } = await liveStage();
  socket.say(7, 7, 0, "!");
  expect(socket.call("subscribe").params).toMatchObject({ cursor: CURSOR });
  const done = agentMessage(1, 7, "Hell");
  const parts = (done.parts as object[]).map((part) => ({ ...part, state: "done" }));
  socket.answer("subscribe", { channel: 7, sync: reset(7, [{ ...done, parts }]) });
  socket.say(7, 8, 0, "!");
  expect(socket.call("subscribe").params).not.toHaveProperty("cursor");
  expect(textOf(session)).toBe("Hell");
});

test("what does not change keeps its identity, and readers are told of what does", async () => {
  const { session, socket } = await liveStage();
  let told = 0;
  session.subscribe(() => told++);
  const before = session.messages;
  socket.say("skip", 7, 5, 6);
  expect(session.messages).toBe(before);
  socket.say("change", 7, 7, true, { messages: [userMessage(2, 7, "Hi")] });
  expect(session.messages).not.toBe(before);
  expect(session.messages[0]).toBe(before[0]);
  expect(told).toBeGreaterThan(0);
});

test("after a lost connection the client subscribes with its cursor, and shows the old copy meanwhile", async () => {
  const { stage, session, socket } = await liveStage();
  socket.end();
  expect(session.state).toBe("offline");
  expect(textOf(session)).toBe("Hell");
  await stage.advance(250); // half of the first bound
  expect(stage.sockets.length).toBe(2);
  stage.socket.welcome();
  expect(stage.socket.call("subscribe").params).toMatchObject({ cursor: CURSOR });
  const entry = { sequence: 1, updated_at: 120, part_count: 1, appends: [[1, "o, you"]] };
  stage.socket.answer("subscribe", {
    channel: 9,
    sync: { mode: "replay", from: 5, epoch: "e1", version: 8, durable: 5, messages: [entry] },
  });
  expect(textOf(session)).toBe("Hello, you");
  expect(session.state).toBe("live");
});

test("frames between a subscribe and its answer are ignored", async () => {
  const { session, socket } = await liveStage();
  socket.say("closed", 7, "reload", true);
  expect(session.state).toBe("syncing");
  socket.say(...delta(6, "o"));
  expect(textOf(session)).toBe("Hell");
  socket.answer("subscribe", { channel: 8, sync: { mode: "catchup", from: 5, epoch: "e1", version: 5 } });
  expect(session.state).toBe("live");
});

test("a gap is repaired with the cursor, a second one within a minute without", async () => {
  const { stage, session, socket } = await liveStage();
  socket.say(...delta(7, "!"));
  expect(textOf(session)).toBe("Hell");
  expect(socket.call("subscribe").params).toMatchObject({ cursor: CURSOR });
  socket.answer("subscribe", { channel: 7, sync: { mode: "replay", from: 5, epoch: "e1", version: 6 } });
  await stage.advance(1000);
  socket.say("mark", 7, 9);
  expect(socket.calls("subscribe").length).toBe(3);
  expect(socket.call("subscribe").params).not.toHaveProperty("cursor");
  socket.answer("subscribe", { channel: 7, sync: reset(9, [agentMessage(1, 9, "Hello!")]) });
  expect(textOf(session)).toBe("Hello!");
});

test("what cannot fit is repaired by a reset", async () => {
  const { session, socket } = await liveStage();
  socket.say("d", 7, 6, 10, 1, 2, "no such part");
  expect(session.state).toBe("syncing");
  expect(socket.call("subscribe").params).not.toHaveProperty("cursor");
});

test("troubles without end are met after growing pauses", async () => {
  const { stage, socket } = await liveStage();
  for (let count = 0; count < 2; count++) {
    socket.say("closed", 7, "reload", true);
    socket.answer("subscribe", { channel: 7, sync: { mode: "catchup", from: 5, epoch: "e1", version: 5 } });
  }
  const before = socket.calls("subscribe").length;
  socket.say("closed", 7, "reload", true);
  expect(socket.calls("subscribe").length).toBe(before);
  await stage.advance(250);
  expect(socket.calls("subscribe").length).toBe(before + 1);
});

test("a deleted session closes, and its frames are nobody's", async () => {
  const { client, session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  socket.answer("prompt", { state: "queued", message_id: handle.messageId, position: 1 });
  socket.say("closed", 7, "deleted", false);
  expect(session.state).toBe("closed");
  expect(session.error).toMatchObject({ code: "session_closed", details: { reason: "deleted" } });
  await expect(handle.finished()).rejects.toMatchObject({ code: "session_closed" });
  expect(client.open("s")).not.toBe(session);
});

test("a session that is missing is created where that was asked for, and closes else", async () => {
  const stage = new Stage();
  const client = stage.client();
  const made = client.open("s", { create: true });
  const missing = client.open("other");
  await settle();
  stage.socket.welcome();
  const ids = stage.socket.calls("subscribe").map(({ id }) => id);
  for (const id of ids) {
    stage.socket.say("error", id, { code: "not_found", message: "none", retryable: false });
  }
  expect(missing.error?.code).toBe("not_found");
  stage.socket.refuse("sessions.create", "already_exists");
  stage.socket.answer("subscribe", { channel: 1, sync: reset(1, []) });
  expect(made.state).toBe("live");
});

test("two sessions do not mix, and a late answer of a closed one is nobody's", async () => {
  const { client, session, socket } = await liveStage();
  const other = client.open("t");
  await settle();
  socket.say("error", 99, { code: "invalid", message: "nobody asked", retryable: false });
  other.close();
  expect(socket.tags()).toContain("call");
  socket.answer("subscribe", { channel: 8, sync: reset(3, [], info(3, { session_id: "t" })) });
  socket.say("d", 8, 6, 10, 1, 1, "of t");
  expect(textOf(session)).toBe("Hell");
  expect(other.state).toBe("closed");
});

test("a page of another version is read again, and one that fits joins below", async () => {
  const stage = new Stage();
  const session = stage.client().open("s");
  await settle();
  stage.socket.welcome();
  const sync = { ...reset(5, [userMessage(3, 5, "three")]), has_more: true };
  stage.socket.answer("subscribe", { channel: 7, sync: { ...sync, session: info(5, { message_count: 3 }) } });
  const loaded = session.loadEarlier(2);
  await settle();
  const { part_count: _, ...two } = userMessage(2, 2, "two");
  const page = {
    items: [two],
    total: 3,
    start_sequence: 2,
    before_sequence: 3,
    has_more: true,
    include_internal: false,
    turns: [],
    epoch: "e1",
  };
  stage.socket.answer("messages", { ...page, version: 4 });
  await settle();
  expect(stage.socket.calls("messages").length).toBe(2);
  stage.socket.answer("messages", { ...page, version: 5 });
  expect(await loaded).toBe(true);
  expect(textOf(session)).toBe("two|three");
  expect(session.hasEarlier).toBe(true);
});

test("an answer above the replica shows that a frame was lost, and is asked for again after a sync", async () => {
  const { session, socket } = await liveStage();
  const report = session.verify();
  await settle();
  socket.answer("verify", { epoch: "e1", version: 6, digests: [] });
  expect(session.state).toBe("syncing");
  expect(socket.call("subscribe").params).toMatchObject({ cursor: CURSOR });
  const entry = { sequence: 1, updated_at: 120, part_count: 1, appends: [[1, "o"]] };
  socket.answer("subscribe", {
    channel: 7,
    sync: { mode: "replay", from: 5, epoch: "e1", version: 6, messages: [entry] },
  });
  await settle();
  expect(socket.calls("verify").length).toBe(2);
  socket.answer("verify", { epoch: "e1", version: 6, digests: [[1, 6, "not this"]] });
  expect(await report).toMatchObject({ isEqual: false, compared: 1, differences: [{ sequence: 1 }] });
});

test("a server whose digests are never of the replica's version is held to be at fault", async () => {
  const { session, socket } = await liveStage();
  const report = expect(session.verify()).rejects.toMatchObject({ code: "incompatible_server" });
  for (let count = 0; count < 20; count++) {
    await settle();
    socket.answer("verify", { epoch: "e1", version: 4, digests: [] });
  }
  await report;
});
