/** Prompts: sent once and in order, whatever becomes of the connection, and followed to the end (SPEC 8). */
import { expect, test } from "vitest";
import { info, liveStage, reset, Stage, settle, userMessage } from "./stage.js";

const turn = (revision: number, state = "running") => ({
  turn_id: "t1",
  revision,
  state,
  phase: "streaming",
  phase_since: 1,
  started_at: 1,
});

test("a prompt goes out with an id of its own, and its handle follows it to the end of its turn", async () => {
  const { session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  const { params } = socket.call("prompt");
  expect(params).toEqual({
    session_id: "s",
    message_id: handle.messageId,
    parts: [{ type: "text", text: "Hi" }],
    delivery: "auto",
  });
  expect([handle.state, session.pending.length]).toEqual(["pending", 1]);
  const message = userMessage(2, 6, "Hi", { message_id: handle.messageId, turn_id: "t1" });
  socket.say("change", 7, 6, true, { messages: [message], turns: [turn(6)] });
  socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t1" });
  expect([handle.state, session.pending.length, await handle.started()]).toEqual(["running", 0, "t1"]);
  socket.say("change", 7, 7, true, { turns: [turn(7, "completed")] });
  expect((await handle.finished()).state).toBe("completed");
});

test("prompts go one by one, and one that is put off is not overtaken", async () => {
  const { stage, session, socket } = await liveStage();
  const first = await session.prompt("one");
  const second = await session.prompt("two");
  expect(socket.calls("prompt").length).toBe(1);
  socket.refuse("prompt", "overloaded", true);
  expect(socket.calls("prompt").length).toBe(1);
  await stage.advance(250);
  expect(socket.call("prompt").params.message_id).toBe(first.messageId);
  socket.answer("prompt", { state: "queued", message_id: first.messageId, position: 1 });
  expect(socket.call("prompt").params.message_id).toBe(second.messageId);
});

test("a prompt whose answer is lost goes out again, unchanged", async () => {
  const { stage, session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  const { params } = socket.call("prompt");
  socket.end();
  await stage.advance(250);
  stage.socket.welcome();
  expect(stage.socket.calls("prompt").map((call) => call.params)).toEqual([params]);
  const tags = stage.socket.sent.map((frame) => frame[2] ?? frame[0]);
  expect(tags.indexOf("subscribe")).toBeLessThan(tags.indexOf("prompt"));
  stage.socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t1" });
  expect((await handle.accepted()).state).toBe("started");
});

test("a prompt that is written offline waits, and can be taken back", async () => {
  const { stage, session, socket } = await liveStage();
  socket.end();
  const kept = await session.prompt("kept");
  const dropped = await session.prompt("dropped");
  expect(session.pending.length).toBe(2);
  expect(await session.cancelInput(dropped.messageId)).toMatchObject({ state: "cancelled" });
  await expect(dropped.finished()).rejects.toMatchObject({ code: "input_cancelled" });
  await stage.advance(250);
  stage.socket.welcome();
  expect(stage.socket.calls("prompt").map((call) => call.params.message_id)).toEqual([kept.messageId]);
});

test("the same prompt again is the same prompt; other content under its id is refused here", async () => {
  const { session, socket } = await liveStage();
  const handle = await session.prompt("Hi", { messageId: "mine" });
  expect(await session.prompt("Hi", { messageId: "mine" })).toBe(handle);
  expect(socket.calls("prompt").length).toBe(1);
  await expect(session.prompt("Ho", { messageId: "mine" })).rejects.toMatchObject({
    code: "idempotency_conflict",
  });
});

test("a refused prompt says so, and the next goes out", async () => {
  const { session, socket } = await liveStage();
  const refused = await session.prompt("one", { delivery: "reject" });
  await session.prompt("two");
  socket.refuse("prompt", "refused");
  await expect(refused.accepted()).rejects.toMatchObject({ code: "refused" });
  expect(refused.state).toBe("refused");
  expect(socket.calls("prompt").length).toBe(2);
});

test("at most so many prompts wait", async () => {
  const stage = new Stage();
  const session = stage.client({ outboxLimit: 2 }).open("s");
  await session.prompt("one");
  await session.prompt("two");
  await expect(session.prompt("three")).rejects.toMatchObject({ code: "outbox_full" });
});

test.each([
  ["half a code point \ud83d"],
  [[{ type: "data", data_type: "n", data: Number.NaN }]],
  [[{ type: "data", data_type: "n", data: 2 ** 60 }]],
])("what the protocol does not carry is refused before it is kept", async (content) => {
  const { session, socket } = await liveStage();
  await expect(session.prompt(content as string)).rejects.toMatchObject({ code: "invalid" });
  expect([session.pending.length, socket.calls("prompt").length]).toEqual([0, 0]);
});

test("a prompt that left the queue unseen is asked for again, and its turn too", async () => {
  const { stage, session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  const queued = info(6, { queue: [handle.messageId], message_count: 1 });
  socket.say("change", 7, 6, true, { session: queued });
  socket.answer("prompt", { state: "queued", message_id: handle.messageId, position: 2 });
  expect(handle.position).toBe(2);
  socket.say("change", 7, 7, true, { session: { ...queued, revision: 7 } });
  expect(handle.position).toBe(1);
  socket.end();
  await stage.advance(250);
  stage.socket.welcome();
  const one = userMessage(1, 9, "all that is left");
  stage.socket.answer("subscribe", { channel: 8, sync: reset(9, [one], info(9)) });
  stage.socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t1" });
  expect(stage.socket.call("turn").params).toEqual({ session_id: "s", turn_id: "t1" });
  stage.socket.answer("turn", { turn: turn(8, "failed") });
  expect((await handle.finished()).state).toBe("failed");
});

test("a turn that is lost fails its handle", async () => {
  const { session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  socket.answer("prompt", { state: "started", message_id: handle.messageId, turn_id: "t1" });
  socket.refuse("turn", "not_found");
  await expect(handle.finished()).rejects.toMatchObject({ code: "not_found" });
});

test("stopping names the turn, and without one takes the prompt back", async () => {
  const { session, socket } = await liveStage();
  const handle = await session.prompt("Hi");
  socket.answer("prompt", { state: "queued", message_id: handle.messageId, position: 1 });
  const stopped = handle.stop();
  socket.answer("cancel_input", { state: "absorbed", message_id: handle.messageId, turn_id: "t1" });
  await settle();
  expect(socket.call("stop").params).toEqual({ session_id: "s", turn_id: "t1", cancel_queue: "own" });
  socket.answer("stop", { stopped: true, turn_id: "t1", cancelled: [], reason: "stopped" });
  await stopped;
});

test("a stop of the current turn is not repeated, one of a named turn is", async () => {
  const { stage, session, socket } = await liveStage();
  const current = expect(session.stop()).rejects.toMatchObject({ code: "connection_lost" });
  const named = session.stop("t1");
  await settle();
  socket.end();
  await current;
  await stage.advance(250);
  stage.socket.welcome();
  expect(stage.socket.calls("stop").map(({ params }) => params.turn_id)).toEqual(["t1"]);
  stage.socket.answer("stop", { stopped: false, cancelled: [], reason: "idle" });
  expect((await named).reason).toBe("idle");
});

test("a response is repeated over a lost connection, and a change of the session is not", async () => {
  const { stage, session, socket } = await liveStage();
  const approved = session.approve("i1", "go on");
  const renamed = expect(session.update({ title: "New" })).rejects.toMatchObject({ details: { sent: true } });
  await settle();
  socket.end();
  await renamed;
  await expect(session.clear()).rejects.toMatchObject({ details: { sent: false } });
  await stage.advance(250);
  stage.socket.welcome();
  const { params } = stage.socket.call("respond");
  expect(params.response).toEqual({ kind: "approval", decision: "approved", reason: "go on" });
  const part = { type: "interaction", part_id: "p", sequence: 1, interaction_id: "i1", status: "resolved" };
  stage.socket.answer("respond", { interaction: part });
  expect((await approved).status).toBe("resolved");
});

test("no more calls are in flight than the server takes, and an answer makes room", async () => {
  const stage = new Stage();
  const client = stage.client();
  const session = client.open("s");
  await settle();
  stage.socket.open();
  stage.socket.say("welcome", { heartbeat_ms: 15_000, limits: { calls_in_flight: 2 } });
  stage.socket.answer("subscribe", { channel: 7, sync: reset(1, []) });
  for (let count = 0; count < 3; count++) {
    session.respond(`i${count}`, { kind: "approval", decision: "denied" }).catch(() => undefined);
  }
  await settle();
  expect(stage.socket.calls("respond").length).toBe(2);
  stage.socket.refuse("respond", "not_found");
  expect(stage.socket.calls("respond").length).toBe(3);
  client.close();
});

test("a call that is not answered in time is given up, and its late answer is nobody's", async () => {
  const { stage, session, socket } = await liveStage({ callTimeoutMs: 2000 });
  const late = expect(session.respond("i", { kind: "approval", decision: "denied" })).rejects.toMatchObject({
    code: "timed_out",
  });
  await stage.advance(2000);
  await late;
  socket.refuse("respond", "interaction_closed");
  expect(session.state).toBe("live");
});

test("a prompt for a session that is still to be made is sent once it is there", async () => {
  const stage = new Stage();
  const session = stage.client().open("s", { create: true });
  const handle = await session.prompt("hello");
  stage.socket.welcome();
  await settle();
  stage.socket.refuse("subscribe", "not_found");
  await settle();
  expect(stage.socket.calls("prompt")).toEqual([]);
  stage.socket.answer("sessions.create", { session: info(1), created: true });
  await settle();
  stage.socket.answer("subscribe", { channel: 7, sync: reset(1, []) });
  expect(stage.socket.calls("prompt").length).toBe(1);
  expect(handle.state).toBe("pending");
});

test("an input that is shown is not pending any more, though the answer to its prompt is on its way", async () => {
  const { session, socket } = await liveStage();
  const started = await session.prompt("one");
  const queued = await session.prompt("two");
  const shown: (readonly string[])[] = [];
  session.subscribe(() => {
    const pending = session.pending.map((prompt) => prompt.message_id);
    const elsewhere = [...session.messages.map((message) => message.message_id), ...session.queue];
    shown.push(pending.filter((id) => elsewhere.includes(id)));
  });
  const message = userMessage(2, 6, "one", { message_id: started.messageId, turn_id: "t1" });
  socket.say("change", 7, 6, true, { messages: [message], turns: [turn(6)] });
  expect(session.pending.map((prompt) => prompt.message_id)).toEqual([queued.messageId]);
  socket.answer("prompt", { state: "started", message_id: started.messageId, turn_id: "t1" });
  socket.say("change", 7, 7, true, { session: info(7, { queue: [queued.messageId] }) });
  expect(session.pending).toEqual([]);
  socket.answer("prompt", { state: "queued", message_id: queued.messageId, position: 1 });
  expect(session.pending).toEqual([]);
  expect(shown.length).toBeGreaterThan(3);
  expect(shown.flat()).toEqual([]);
});
