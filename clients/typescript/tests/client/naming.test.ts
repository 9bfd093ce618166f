/** Sessions whose id the server chooses, because the token does not let the client choose it (SPEC 10.5). */
import { expect, test } from "vitest";
import { keepIn, memoryMap, type Session } from "../../src/index.js";
import { info, reset, Stage, settle, userMessage } from "./stage.js";

const FIELD = { field: "session_id" };
const named = (version: number) => ({ session: info(version, { session_id: "x" }), epoch: "e1", version });
const synced = (...messages: Record<string, unknown>[]) => ({
  channel: 3,
  sync: reset(
    2,
    messages.map((message) => ({ ...message, session_id: "x" })),
    info(2, { session_id: "x" }),
  ),
});

/** Open a session by a name of one's own, at a server that gives it another. */
async function begin(stage: Stage, client = stage.client()): Promise<Session> {
  const session = client.open("mine", { create: true });
  await settle();
  stage.socket.welcome();
  await settle();
  stage.socket.refuse("subscribe", "not_found");
  return session;
}

/** Refuse the id, and give another. */
async function name(stage: Stage): Promise<void> {
  stage.socket.refuse("sessions.create", "forbidden", false, FIELD);
  stage.socket.answer("sessions.create", named(1));
  await settle();
}

test("an id that may not be chosen is left out, and the one that the server gives is the session's", async () => {
  const stage = new Stage();
  const client = stage.client();
  const session = await begin(stage, client);
  expect(stage.socket.call("sessions.create").params).toEqual({ session_id: "mine", key: "mine" });
  await name(stage);
  expect(stage.socket.call("sessions.create").params).toEqual({ key: "mine" });
  expect(stage.socket.call("subscribe").params).toMatchObject({ session_id: "x" });
  stage.socket.answer("subscribe", synced());
  expect(session).toMatchObject({ sessionId: "x", state: "live", info: { session_id: "x" } });
  expect(client.open("x")).toBe(session);
  expect(client.open("mine")).toBe(session);
});

test("prompts that were written before there was an id are sent to the session, once", async () => {
  const stage = new Stage();
  const session = await begin(stage);
  const handle = await session.prompt("first");
  await name(stage);
  stage.socket.answer("subscribe", synced());
  expect(stage.socket.call("prompt").params).toMatchObject({ session_id: "x", message_id: handle.messageId });
  stage.socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t" });
  expect(handle.state).toBe("running");
  expect(stage.socket.calls("prompt").length).toBe(1);
  expect(session.pending).toEqual([]);
});

test("what was kept goes over to the new id, and is found by the old one too", async () => {
  const map = memoryMap();
  const first = new Stage();
  const session = await begin(first, first.client({ store: keepIn(map) }));
  await session.prompt("written before");
  await name(first);
  const kept = (await map.readAll("prompt ")) as { prompt: { session_id: string } }[];
  expect(kept.map(({ prompt }) => prompt.session_id)).toEqual(["x"]);

  const next = new Stage();
  const again = await begin(next, next.client({ store: keepIn(map) }));
  await again.prompt("written after");
  await name(next);
  expect(again.pending.map(({ parts }) => parts[0])).toMatchObject([
    { text: "written before" },
    { text: "written after" },
  ]);
  next.socket.answer("subscribe", synced());
  expect(next.socket.call("prompt").params).toMatchObject({ parts: [{ text: "written before" }] });
});

test("a lost connection does not lose the name", async () => {
  const stage = new Stage();
  const session = await begin(stage);
  stage.socket.refuse("sessions.create", "forbidden", false, FIELD);
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome();
  expect(stage.socket.calls("subscribe")).toEqual([]);
  stage.socket.answer("sessions.create", named(1));
  await settle();
  stage.socket.answer("subscribe", synced(userMessage(1, 2, "hello")));
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome();
  expect(stage.socket.call("subscribe").params).toMatchObject({ session_id: "x", cursor: { version: 2 } });
  expect(session.messages.length).toBe(1);
});

test("a token that names its sessions, and not this one, is told so", async () => {
  const stage = new Stage();
  const session = await begin(stage);
  stage.socket.refuse("sessions.create", "forbidden", false, FIELD);
  stage.socket.refuse("sessions.create", "forbidden", false, FIELD);
  expect(session).toMatchObject({ state: "closed", error: { code: "forbidden" } });
  expect(stage.socket.calls("sessions.create").length).toBe(2);
});

test("who may not make sessions at all is refused once", async () => {
  const stage = new Stage();
  const session = await begin(stage);
  stage.socket.refuse("sessions.create", "forbidden", false, { field: "scopes" });
  expect(session).toMatchObject({ state: "closed", error: { code: "forbidden" } });
  expect(stage.socket.calls("sessions.create").length).toBe(1);
});

test("a session that was deleted is not made again by its name", async () => {
  const stage = new Stage();
  const session = await begin(stage);
  stage.socket.refuse("sessions.create", "forbidden", false, FIELD);
  stage.socket.refuse("sessions.create", "idempotency_conflict");
  stage.socket.refuse("subscribe", "not_found");
  expect(session.error).toMatchObject({ code: "not_found" });
});

test("a session that is open under its id stays that of who opened it so; the other name says where it is", async () => {
  const stage = new Stage();
  const client = stage.client();
  const opened = client.open("x");
  await settle();
  const session = client.open("mine", { create: true });
  await settle();
  stage.socket.welcome();
  stage.socket.say("error", stage.socket.calls("subscribe").at(-1)?.id, {
    code: "not_found",
    message: "not_found",
    retryable: false,
  });
  await name(stage);
  expect(session.error).toMatchObject({ code: "session_closed", details: { id: "mine" } });
  expect(session.error?.message).toContain("x");
  expect(opened.state).not.toBe("closed");
});
