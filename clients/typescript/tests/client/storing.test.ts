/** What a reload finds: the last copy at once, and what was not sent yet (SPEC 4.4, rule 18). */
import "fake-indexeddb/auto";
import { describe, expect, test } from "vitest";
import { keepIn, memoryMap, type TextMap } from "../../src/index.js";
import { indexedDbMap } from "../../src/indexeddb.js";
import { liveStage, reset, Stage, settle, userMessage } from "./stage.js";

/** The stage after a reload, on the same store. */
async function reloaded(map: TextMap) {
  const stage = new Stage();
  const client = stage.client({ store: keepIn(map) });
  const session = client.open("s");
  await session.restored;
  return { stage, client, session };
}

test("a reload shows the conversation at once, and catches up by the cursor", async () => {
  const map = memoryMap();
  const before = await liveStage({ store: keepIn(map) });
  const { messages } = before.session;
  before.client.close();
  await settle();
  const { stage, session } = await reloaded(map);
  expect(session.messages).toEqual(messages);
  expect(session.state).not.toBe("live"); // it counts only after a sync
  stage.socket.welcome();
  expect(stage.socket.call("subscribe").params.cursor).toEqual({ epoch: "e1", version: 5, durable: 5 });
  stage.socket.answer("subscribe", {
    channel: 7,
    sync: { mode: "catchup", from: 5, epoch: "e1", version: 6 },
  });
  expect(session.state).toBe("live");
});

test("a cache of a history that was cleared is replaced by what the server says", async () => {
  const map = memoryMap();
  (await liveStage({ store: keepIn(map) })).client.close();
  await settle();
  const { stage, session } = await reloaded(map);
  expect(session.messages.length).toBe(1);
  stage.socket.welcome();
  stage.socket.answer("subscribe", { channel: 7, sync: reset(9, []) });
  expect(session.messages).toEqual([]);
});

test("prompts that were written offline go out after the reload, in order, under the ids they had", async () => {
  const map = memoryMap();
  const { stage: first, client, session: before, socket } = await liveStage({ store: keepIn(map) });
  socket.end();
  const one = await before.prompt("one");
  first.freeze(5);
  const two = await before.prompt("two");
  client.close();
  const { stage, session } = await reloaded(map);
  expect(session.pending.map(({ message_id }) => message_id)).toEqual([one.messageId, two.messageId]);
  stage.socket.welcome();
  stage.socket.answer("prompt", { state: "started", message_id: one.messageId, turn_id: "t1" });
  expect(stage.socket.calls("prompt").map(({ params }) => params.message_id)).toEqual([
    one.messageId,
    two.messageId,
  ]);
  expect(session.handle(one.messageId)?.turnId).toBe("t1");
  stage.socket.answer("prompt", { state: "queued", message_id: two.messageId, position: 1 });
  await settle();
  const later = await reloaded(map);
  expect(later.session.pending).toEqual([]);
});

test("a prompt that is written before the store was read does not overtake those in it", async () => {
  const map = memoryMap();
  const first = new Stage().client({ store: keepIn(map) });
  const kept = await first.open("s").prompt("kept");
  first.close();
  const session = new Stage().client({ store: keepIn(map) }).open("s");
  const handle = await session.prompt("new");
  expect(session.pending.map(({ message_id }) => message_id)).toEqual([kept.messageId, handle.messageId]);
});

test("prompts of one millisecond, and of a clock that was put back, keep their order over reloads", async () => {
  const map = indexedDbMap("order"); // gives them in the order of their keys, which is none
  let wallMs = 1_700_000_000_000;
  const written = Array.from({ length: 12 }, (_, index) => `prompt ${index}`);
  const texts: string[][] = [];
  for (const half of [written.slice(0, 6), written.slice(6)]) {
    const keeper = keepIn(map).keeper("s", false, () => undefined);
    expect((await keeper.load()).prompts.length).toBe(texts.length * 6);
    for (const [index, text] of half.entries()) {
      const message_id = `${(index * 7 + 3) % 11} ${text}`;
      const parts = [{ type: "text", text }] as const;
      await keeper.keepPrompt({ session_id: "s", message_id, parts, delivery: "auto" }, wallMs);
    }
    texts.push(half);
    wallMs -= 3_600_000;
  }
  const { prompts } = await keepIn(map)
    .keeper("s", false, () => undefined)
    .load();
  expect(prompts.map(({ parts: [part] }) => part?.type === "text" && part.text)).toEqual(written);
});

test("a page that may be ended stores what it has", async () => {
  const map = memoryMap();
  const { stage, socket } = await liveStage({ store: keepIn(map) });
  socket.say("d", 7, 6, 10, 1, 1, "o");
  await stage.news("asleep");
  const { session } = await reloaded(map);
  expect(session.version).toBe(6);
});

test("a deleted session leaves nothing in the store", async () => {
  const map = memoryMap();
  const { stage, session, socket } = await liveStage({ store: keepIn(map) });
  await session.prompt("Hi");
  await stage.advance(1000);
  expect((await map.readAll("")).length).toBe(2);
  socket.say("closed", 7, "deleted", false);
  await settle();
  expect(await map.readAll("")).toEqual([]);
});

test("a deleted session leaves no prompt either that is shown, and whose answer never came", async () => {
  const map = memoryMap();
  const { session, socket } = await liveStage({ store: keepIn(map) });
  const { messageId } = await session.prompt("Hi");
  socket.say("change", 7, 6, true, { messages: [userMessage(2, 6, "Hi", { message_id: messageId })] });
  expect(session.pending).toEqual([]);
  socket.say("closed", 7, "deleted", false);
  await settle();
  expect(await map.readAll("")).toEqual([]);
});

test("places do not see each other", async () => {
  const map = memoryMap();
  await new Stage()
    .client({ store: keepIn(map, "ann") })
    .open("s")
    .prompt("mine");
  const other = new Stage().client({ store: keepIn(map, "bob") }).open("s");
  await other.restored;
  expect(other.pending).toEqual([]);
});

test("a store that fails costs what it would have kept, and nothing else", async () => {
  const broken = (): Promise<never> => Promise.reject(new Error("quota"));
  const map: TextMap = { read: broken, readAll: broken, write: broken, remove: broken };
  const troubles: unknown[] = [];
  const { session, socket } = await liveStage({
    store: keepIn(map),
    onTrouble: (error) => troubles.push(error),
  });
  const handle = await session.prompt("Hi");
  socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t1" });
  expect(handle.state).toBe("running");
  expect(troubles.length).toBeGreaterThanOrEqual(3);
});

test("what was kept in another form, or was damaged, is not shown", async () => {
  const map = memoryMap();
  (await liveStage({ store: keepIn(map) })).client.close();
  await settle();
  const [kept] = (await map.readAll("replica")) as { form: number; replica: object }[];
  const key = 'replica ["","s"]';
  for (const damaged of [
    { ...kept, form: 0 },
    { ...kept, replica: { ...kept?.replica, messages: 7 } },
    { ...kept, replica: { ...kept?.replica, cursor: { epoch: "e1", version: -1, durable: 0 } } },
    { ...kept, replica: { ...kept?.replica, cursor: {} } },
    "?",
  ]) {
    await map.write(key, damaged);
    const { client, session } = await reloaded(map);
    expect([session.messages, client.state]).toEqual([[], "connecting"]);
    client.close();
  }
  await map.write(key, kept);
  expect((await reloaded(map)).session.messages.length).toBe(1);
});

test("a kept prompt that was damaged stops nothing, and those beside it are sent", async () => {
  const map = memoryMap();
  const first = new Stage().client({ store: keepIn(map) });
  const good = await first.open("s").prompt("good");
  first.close();
  const elsewhere = { session_id: "other", message_id: "m", parts: [], delivery: "auto" };
  for (const [index, damaged] of [null, "?", {}, { at: 1 }, { prompt: elsewhere, at: 1 }].entries()) {
    await map.write(`prompt ["","s"] ${index}`, damaged);
  }
  const { stage, client, session } = await reloaded(map);
  expect(session.pending.map(({ message_id }) => message_id)).toEqual([good.messageId]);
  stage.socket.welcome();
  expect(stage.socket.call("subscribe").params.session_id).toBe("s");
  expect(client.state).toBe("live");
});

test("more prompts than may wait are all sent, if they were kept", async () => {
  const map = memoryMap();
  const writer = new Stage().client({ store: keepIn(map) }).open("s");
  await writer.prompt("one");
  await writer.prompt("two");
  const reader = new Stage().client({ store: keepIn(map), outboxLimit: 1 }).open("s");
  await reader.restored;
  expect(reader.pending.length).toBe(2);
});

test("a store that does not answer is not waited for", async () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const stage = new Stage();
  const session = stage
    .client({ store: keepIn({ read: never, readAll: never, write: never, remove: never }) })
    .open("s");
  await settle();
  stage.socket.welcome();
  expect(stage.socket.calls("subscribe")).toEqual([]);
  await stage.advance(2000);
  stage.socket.answer("subscribe", { channel: 7, sync: reset(1, []) });
  expect(session.state).toBe("live");
});

test("a prompt is sent, and followed, though the store never says that it is kept", async () => {
  const never = (): Promise<never> => new Promise(() => undefined);
  const store = keepIn({ ...memoryMap(), write: never });
  const { stage, session, socket } = await liveStage({ store });
  const written = session.prompt("Hi");
  await settle();
  const { message_id } = socket.call("prompt").params;
  await stage.advance(2000);
  expect((await written).messageId).toBe(message_id);
});

test("the newest messages are kept, and earlier ones can be loaded", async () => {
  const map = memoryMap();
  const stage = new Stage();
  const client = stage.client({ store: keepIn(map) });
  const session = client.open("s");
  await session.restored;
  await settle();
  stage.socket.welcome();
  const many = Array.from({ length: 250 }, (_, at) => userMessage(at + 1, 1, "x"));
  stage.socket.answer("subscribe", { channel: 7, sync: reset(1, many) });
  expect(session.hasEarlier).toBe(false);
  client.close();
  await settle();
  const after = await reloaded(map);
  expect([after.session.messages.length, after.session.hasEarlier]).toEqual([200, true]);
});

describe.each([
  ["memory", memoryMap],
  ["IndexedDB", () => indexedDbMap(`test ${Math.random()}`)],
])("a map in %s", (_, make) => {
  test("gives back what was written, by key and by the beginning of keys", async () => {
    const map = make();
    await map.write("a 1", { list: [1, "é", null] });
    await map.write("a 2", "two");
    await map.write("b", true);
    await map.write("b", false);
    expect(await map.read("a 1")).toEqual({ list: [1, "é", null] });
    expect(await map.read("b")).toBe(false);
    expect((await map.read("c")) ?? null).toBe(null);
    expect(await map.readAll("a ")).toEqual([{ list: [1, "é", null] }, "two"]);
    await map.remove("a 1");
    expect(await map.readAll("a ")).toEqual(["two"]);
  });
});
