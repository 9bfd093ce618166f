/** The list of sessions, kept as the server has it (SPEC 4.8). */
import { expect, test } from "vitest";
import { type SessionList, watchSessions } from "../../src/sessions.js";
import { type FakeSocket, info, Stage, settle } from "./stage.js";

type Fields = Record<string, unknown>;

/** A session as it is at a revision, which is also its time. */
const entity = (session_id: string, revision: number, more: Fields = {}): Fields =>
  info(revision, { session_id, updated_at: revision, ...more });

const ids = (list: SessionList): string[] => list.items.map((item) => item.session_id);

/** A client that watches, welcomed and answered. */
async function watching(
  items: Fields[],
  more: Fields = {},
  options: { limit?: number; archived?: boolean } = {},
) {
  const stage = new Stage();
  const client = stage.client();
  const list = watchSessions(client, options);
  await settle();
  stage.socket.welcome();
  await settle();
  stage.socket.answer("sessions.watch", { items, ...more });
  await settle();
  return { stage, client, list, socket: stage.socket };
}

/** Lose the connection, come back, and answer the watch that follows. */
async function comeBack(stage: Stage, items: Fields[], more: Fields = {}): Promise<FakeSocket> {
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome();
  await settle();
  stage.socket.answer("sessions.watch", { items, ...more });
  await settle();
  return stage.socket;
}

test("the list is the answer of a watch, last changed first and then by id", async () => {
  const { list } = await watching([
    entity("b", 7),
    entity("z", 9, { updated_at: 7 }),
    entity("a", 3, { updated_at: 7 }),
    entity("c", 8),
  ]);
  expect(list.state).toBe("live");
  expect(ids(list)).toEqual(["c", "a", "b", "z"]);
  expect(list.hasMore).toBe(false);
});

test("of two copies of a session the greater revision wins, and what did not change stays the same object", async () => {
  const { list, socket } = await watching([entity("a", 5, { title: "A" }), entity("b", 4)]);
  const [a, b] = list.items;
  socket.say("sessions", { changed: [entity("a", 4, { title: "old" })] });
  expect(list.items[0]).toBe(a);
  socket.say("sessions", { changed: [entity("b", 6, { title: "B" }), entity("c", 1)] });
  expect(ids(list)).toEqual(["b", "a", "c"]);
  expect(list.items[1]).toBe(a);
  expect(list.items[0]).not.toBe(b);
});

test("a removed session is gone, and an archived one moves to the other list", async () => {
  const { list, socket, client } = await watching([entity("a", 5), entity("b", 4)]);
  const archived = watchSessions(client, { archived: true });
  await settle();
  expect(socket.call("sessions.watch").params).toEqual({ limit: 50, archived: true });
  socket.answer("sessions.watch", { items: [] });
  socket.say("sessions", { changed: [entity("a", 6, { archived_at: 6 })], removed: ["b"] });
  expect(ids(list)).toEqual([]);
  expect(ids(archived)).toEqual(["a"]);
  socket.say("sessions", { changed: [entity("a", 7)] });
  expect(ids(list)).toEqual(["a"]);
  expect(ids(archived)).toEqual([]);
});

test("frames before the answer are ignored, because it replaces everything", async () => {
  const stage = new Stage();
  const list = watchSessions(stage.client());
  await settle();
  stage.socket.welcome();
  await settle();
  stage.socket.say("sessions", { changed: [entity("a", 9)] });
  expect(ids(list)).toEqual([]);
  stage.socket.answer("sessions.watch", { items: [entity("b", 2)] });
  expect(ids(list)).toEqual(["b"]);
});

test("after a reconnect it asks again, shows what it had meanwhile, and drops what was removed while it was away", async () => {
  const { stage, list, socket } = await watching([entity("a", 5), entity("b", 4)]);
  const [a] = list.items;
  socket.end();
  expect(list.state).toBe("offline");
  expect(ids(list)).toEqual(["a", "b"]);
  await stage.advance(1000);
  stage.socket.welcome();
  await settle();
  expect(list.state).toBe("syncing");
  expect(stage.socket.calls("sessions.watch").length).toBe(1);
  stage.socket.answer("sessions.watch", { items: [entity("a", 5), entity("d", 1)] });
  expect(ids(list)).toEqual(["a", "d"]);
  expect(list.items[0]).toBe(a);
});

test("an answer with lower revisions replaces as well: the database may have been restored", async () => {
  const { stage, list } = await watching([entity("a", 5, { title: "new" })]);
  await comeBack(stage, [entity("a", 3, { title: "restored" })]);
  expect(list.items[0]?.title).toBe("restored");
});

test("a watch that lost its connection before the answer is asked once on the next", async () => {
  const stage = new Stage();
  watchSessions(stage.client());
  await settle();
  stage.socket.welcome();
  await settle();
  expect(stage.socket.calls("sessions.watch").length).toBe(1);
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome();
  await settle();
  expect(stage.socket.calls("sessions.watch").length).toBe(1);
});

test("where frames were left out, it asks again and shows the old list until the answer", async () => {
  const { list, socket } = await watching([entity("a", 5), entity("b", 4)]);
  socket.say("sessions", { incomplete: true });
  expect(list.state).toBe("syncing");
  socket.say("sessions", { changed: [entity("c", 9)] });
  expect(ids(list)).toEqual(["a", "b"]);
  expect(socket.calls("sessions.watch").length).toBe(2);
  socket.answer("sessions.watch", { items: [entity("b", 8)] });
  expect(ids(list)).toEqual(["b"]);
  expect(list.state).toBe("live");
});

test("more pages join below, and a session that moved up meanwhile stands there once", async () => {
  const { list, socket } = await watching(
    [entity("a", 9), entity("b", 8)],
    { next_after: "x" },
    { limit: 2 },
  );
  expect(list.hasMore).toBe(true);
  const more = list.loadMore();
  await settle();
  expect(socket.call("sessions.list").params).toEqual({ limit: 2, after: "x", archived: false });
  socket.say("sessions", { changed: [entity("c", 12)] });
  socket.answer("sessions.list", { items: [entity("c", 7), entity("d", 6)] });
  expect(await more).toBe(true);
  expect(list.items.map((item) => [item.session_id, item.revision])).toEqual([
    ["c", 12],
    ["a", 9],
    ["b", 8],
    ["d", 6],
  ]);
  expect(list.hasMore).toBe(false);
  expect(await list.loadMore()).toBe(false);
});

test("a page of sessions that moved up meanwhile is a page, and there may be more", async () => {
  const { list, socket } = await watching([entity("a", 9)], { next_after: "x" });
  const more = list.loadMore();
  await settle();
  socket.say("sessions", { changed: [entity("b", 12)] });
  socket.answer("sessions.list", { items: [entity("b", 7)], next_after: "y" });
  expect(await more).toBe(true);
  expect(list.hasMore).toBe(true);
});

test("a page that was read before a removal, or an archiving, brings nothing back", async () => {
  const { list, socket } = await watching([entity("a", 9)], { next_after: "x" });
  const more = list.loadMore();
  await settle();
  socket.say("sessions", { removed: ["c"], changed: [entity("d", 12, { archived_at: 12 })] });
  socket.answer("sessions.list", { items: [entity("c", 7), entity("d", 6), entity("e", 5)] });
  await more;
  expect(ids(list)).toEqual(["a", "e"]);
});

test("a page that was asked for before a reconnect is asked for again, where the new list ends", async () => {
  const { stage, list, socket } = await watching([entity("a", 9)], { next_after: "x" });
  const more = list.loadMore();
  await settle();
  expect(socket.calls("sessions.list").length).toBe(1);
  const next = await comeBack(stage, [entity("b", 10)], { next_after: "y" });
  next.answer("sessions.list", { items: [entity("a", 9)], next_after: "z" });
  await settle();
  expect(next.call("sessions.list").params).toMatchObject({ after: "y" });
  next.answer("sessions.list", { items: [entity("c", 3)] });
  expect(await more).toBe(true);
  expect(ids(list)).toEqual(["b", "c"]);
});

test("a list that was loaded far down does not get shorter by a reconnect", async () => {
  const first = Array.from({ length: 200 }, (_, at) => entity(`s${at}`, 1000 - at));
  const { stage, list, socket } = await watching(first, { next_after: "x" }, { limit: 200 });
  const more = list.loadMore();
  await settle();
  socket.answer("sessions.list", { items: [entity("low", 1)] });
  await more;
  const lengths = new Set<number>();
  list.subscribe(() => lengths.add(list.items.length));
  const next = await comeBack(stage, first, { next_after: "y" });
  expect(list.state).toBe("syncing");
  next.say("sessions", { changed: [entity("s0", 2000)] });
  next.answer("sessions.list", { items: [entity("low", 1)] });
  await settle();
  expect(list.state).toBe("live");
  expect([...lengths]).toEqual([201]);
  expect(list.items[0]?.revision).toBe(2000);
});

test("several lists share a watch, and the last one that closes ends it", async () => {
  const { list, client, socket } = await watching([entity("a", 5)]);
  const other = watchSessions(client);
  await settle();
  socket.answer("sessions.watch", { items: [entity("a", 5)] });
  list.close();
  expect(list.state).toBe("closed");
  expect(socket.calls("sessions.unwatch").length).toBe(0);
  socket.say("sessions", { changed: [entity("b", 6)] });
  expect(ids(other)).toEqual(["b", "a"]);
  expect(ids(list)).toEqual(["a"]);
  other.close();
  expect(socket.calls("sessions.unwatch").length).toBe(1);
});

test("a list that closes while the other asks again leaves that one its answer", async () => {
  const { list, client, socket } = await watching([entity("a", 5)]);
  const other = watchSessions(client);
  list.close();
  await settle();
  socket.answer("sessions.watch", { items: [entity("c", 5)] });
  expect(ids(other)).toEqual(["c"]);
  expect(other.state).toBe("live");
});

test("a server that does not know the call closes the list, with the reason, and nothing else", async () => {
  const stage = new Stage();
  const client = stage.client();
  const list = watchSessions(client);
  await settle();
  stage.socket.welcome();
  await settle();
  stage.socket.refuse("sessions.watch", "unknown_method");
  expect(list.state).toBe("closed");
  expect(list.error?.code).toBe("unknown_method");
  expect(client.state).toBe("live");
});

test("an answer that cannot be read closes the list, and a frame that cannot be read the connection", async () => {
  const { list, client, socket, stage } = await watching([entity("a", 5)]);
  socket.say("sessions", { changed: [{ session_id: "b" }] });
  expect(client.state).toBe("offline");
  await stage.advance(1000);
  stage.socket.welcome();
  await settle();
  stage.socket.answer("sessions.watch", { items: [{}] });
  expect(list.error?.code).toBe("invalid");
  expect(client.state).toBe("live");
});

test("a list closes with its client", async () => {
  const { list, client } = await watching([entity("a", 5)]);
  client.close();
  expect(list.state).toBe("closed");
  expect(list.error).toBeUndefined();
});

test("listeners are told of each change once, and of nothing else", async () => {
  const { list, socket } = await watching([entity("a", 5)]);
  let told = 0;
  const stop = list.subscribe(() => told++);
  const before = list.items;
  socket.say("sessions", { changed: [entity("a", 5)] });
  expect(told).toBe(0);
  expect(list.items).toBe(before);
  socket.say("sessions", { changed: [entity("a", 6)], removed: ["q"] });
  expect(told).toBe(1);
  stop();
  socket.say("sessions", { removed: ["a"] });
  expect(told).toBe(1);
});
