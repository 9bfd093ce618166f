/** Tokens: given in the hello, renewed in time, asked for anew when they end (SPEC 4.7, 10.6). */
import { expect, test } from "vitest";
import { keepIn, memoryMap } from "../../src/index.js";
import { agentMessage, liveStage, reset, Stage, settle } from "./stage.js";

/** A client that is asked for tokens, which are numbered; `asked` says whether the last was refused. */
async function asking(token?: (count: number) => string | null | Promise<string | null>) {
  const stage = new Stage();
  const asked: boolean[] = [];
  const client = stage.client({
    token: (refused) => {
      asked.push(refused);
      return token ? token(asked.length) : `token ${asked.length}`;
    },
  });
  client.connect();
  await settle();
  return { stage, client, asked };
}

const tokens = (stage: Stage) => stage.sockets.map(({ sent }) => sent[0]?.[2]);
const hour = { token_ms: 3_600_000 };

test("a token goes into the hello, and nowhere else", async () => {
  const stage = new Stage();
  stage.client({ token: "secret" }).connect();
  await settle();
  stage.socket.welcome();
  expect(stage.socket.sent).toEqual([["hello", 1, "secret", { client: "midstream-typescript" }]]);
  expect(stage.socket.url).toBe("ws://stage");
});

test("a token that was not accepted is asked for anew at once, and never used again", async () => {
  const { stage, client, asked } = await asking();
  stage.socket.open();
  stage.socket.end(4504, "unauthorized");
  expect(client.refusal).toBe("unauthorized");
  await stage.advance(0);
  stage.socket.welcome();
  expect(tokens(stage)).toEqual(["token 1", "token 2"]);
  expect(asked).toEqual([false, true]);
  expect(client).toMatchObject({ state: "live", refusal: undefined });
});

test("a second token that is not accepted is the last", async () => {
  const { stage, client } = await asking();
  for (let count = 0; count < 2; count++) {
    stage.socket.open();
    stage.socket.end(4504, "unauthorized");
    await stage.advance(0);
  }
  await stage.advance(60_000);
  expect(tokens(stage)).toEqual(["token 1", "token 2"]);
  expect(client).toMatchObject({ state: "closed", refusal: "unauthorized" });
  expect(client.error).toMatchObject({ code: "connection_rejected", details: { close_code: 4504 } });
});

test("after an expired token the client is back at once, and after a second one with growing pauses, however often", async () => {
  const { stage, client } = await asking();
  const pauses: number[] = [];
  for (let count = 0; count < 4; count++) {
    const [before, opened] = [stage.now, stage.sockets.length];
    stage.socket.open();
    stage.socket.end(4505, "token_expired");
    while (stage.sockets.length === opened) {
      await stage.advance(50);
    }
    pauses.push(stage.now - before);
  }
  expect(client.refusal).toBe("token_expired");
  expect(pauses).toEqual([50, 250, 500, 1000]);
  stage.socket.welcome();
  stage.socket.end(4505, "token_expired");
  await stage.advance(0);
  stage.socket.open();
  expect(tokens(stage)).toEqual([1, 2, 3, 4, 5, 6].map((count) => `token ${count}`));
});

test.each([4504, 4505])("a token that is a fixed text ends the client at the first %i", async (code) => {
  const stage = new Stage();
  const client = stage.client({ token: "fixed" });
  client.connect();
  await settle();
  stage.socket.open();
  stage.socket.end(code, "because");
  await stage.advance(60_000);
  expect(stage.sockets.length).toBe(1);
  expect(client.error).toMatchObject({ code: "connection_rejected", details: { close_code: code } });
});

test("who has no other token after a refusal does not come back", async () => {
  const { stage, client } = await asking((count) => (count === 1 ? "expired" : null));
  stage.socket.open();
  stage.socket.end(4505, "token_expired");
  await stage.advance(60_000);
  expect(stage.sockets.length).toBe(1);
  expect(client).toMatchObject({ state: "closed", refusal: "token_expired" });
  expect(client.error).toMatchObject({ details: { close_code: 4505 } });
});

test("a function that fails is asked again with growing pauses, and what it said is told nobody", async () => {
  const { stage, client, asked } = await asking((count) => {
    if (count < 6) {
      throw new RangeError("secret");
    }
    return "at last";
  });
  expect(client).toMatchObject({ state: "offline", problem: "No token was to be had (RangeError)." });
  await stage.advance(1000);
  expect(asked.length).toBeLessThan(4);
  await stage.advance(8000);
  stage.socket.welcome();
  expect(tokens(stage)).toEqual(["at last"]);
  expect(client.state).toBe("live");
});

test("a token may take its time, over a page that is looked at again: a person may be asked", async () => {
  let give: (token: string) => void = () => undefined;
  const { stage, client, asked } = await asking(
    () =>
      new Promise<string>((resolve) => {
        give = resolve;
      }),
  );
  await stage.advance(600_000);
  await stage.news("awake");
  await stage.advance(600_000);
  expect(asked).toEqual([false]);
  expect(client.state).toBe("connecting");
  give("typed in");
  await settle();
  await stage.advance(9999);
  stage.socket.welcome();
  expect(tokens(stage)).toEqual(["typed in"]);
  expect(client.state).toBe("live");
});

test("what was asked for a connection that was given up is not used for the next", async () => {
  const give: ((token: string) => void)[] = [];
  const { stage, client } = await asking(() => new Promise<string>((resolve) => give.push(resolve)));
  await stage.news("away");
  await stage.news("awake");
  give[0]?.("too late");
  await settle();
  expect(stage.sockets.length).toBe(0);
  give[1]?.("in time");
  await settle();
  stage.socket.welcome();
  expect(tokens(stage)).toEqual(["in time"]);
  client.close();
});

test.each([
  ["at 80 % of its time", 3_600_000, 2_880_000],
  ["ten seconds before its end, where that is earlier", 40_000, 30_000],
  ["at 80 % of a short time", 5000, 4000],
])("a token is renewed on the same connection: %s", async (_, token_ms, due) => {
  const { stage, client } = await asking();
  stage.socket.welcome(1_000_000_000, { token_ms, subject: "ann", scopes: ["read", "write"] });
  await stage.advance(due - 1);
  expect(stage.socket.calls("auth")).toEqual([]);
  await stage.advance(1);
  expect(stage.socket.call("auth").params).toEqual({ token: "token 2" });
  stage.socket.answer("auth", { subject: "ann", scopes: ["read"], token_ms: 20_000 });
  expect(client.welcome).toMatchObject({ subject: "ann", scopes: ["read"] });
  await stage.advance(10_000);
  expect(stage.socket.call("auth").params).toEqual({ token: "token 3" });
  stage.socket.answer("auth", { subject: "ann", scopes: ["read"] });
  await stage.advance(100_000);
  expect(stage.socket.calls("auth").length).toBe(2);
  expect(stage.sockets.length).toBe(1);
});

test("a renewal that is refused, or for which there is no other token, is tried again after five seconds", async () => {
  const given = ["one", "two", "two", null, "three"];
  const { stage } = await asking((count) => given[count - 1] ?? null);
  stage.socket.welcome(1_000_000_000, { token_ms: 100_000 });
  await stage.advance(80_000);
  stage.socket.refuse("auth", "forbidden", false, { field: "token" });
  await stage.advance(14_999);
  expect(stage.socket.calls("auth").map(({ params }) => params.token)).toEqual(["two"]);
  await stage.advance(1);
  expect(stage.socket.calls("auth").map(({ params }) => params.token)).toEqual(["two", "three"]);
});

test("a token that lasts for years is no timer that fires at once, and what never expires is not renewed", async () => {
  const { stage, asked } = await asking();
  stage.socket.welcome(1_000_000_000, { token_ms: 1e12 });
  await stage.advance(10_000);
  expect(asked).toEqual([false]);
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome();
  await stage.advance(10_000_000);
  expect(stage.socket.calls("auth")).toEqual([]);
});

test("a renewal ends with its connection", async () => {
  const { stage, asked } = await asking();
  stage.socket.welcome(15_000, hour);
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome(1_000_000_000);
  await stage.advance(3_600_000);
  expect(asked).toEqual([false, false]);
  expect(stage.socket.calls("auth")).toEqual([]);
});

test("a client is one subject's: a token of another ends it before anything is sent or forgotten", async () => {
  const map = memoryMap();
  const { stage, client, session } = await liveStage({ token: async () => "token", store: keepIn(map) });
  session.save();
  await session.prompt("for ann only").catch(() => undefined);
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome(15_000, { subject: "ann" });
  stage.socket.answer("subscribe", { channel: 8, sync: reset(5, [agentMessage(1, 5, "Hell")]) });
  await settle();
  stage.socket.end();
  await stage.advance(1000);
  stage.socket.welcome(15_000, { subject: "bob" });
  expect(stage.socket.tags()).toEqual(["hello"]);
  expect(client.error).toMatchObject({ code: "another_subject", details: { subject: "bob" } });
  expect(stage.socket.isClosed).toBe(true);
  await settle();
  expect((await map.readAll("")).length).toBe(2);
});

test("the subject of what is stored may be named, so that the first token is not another's", async () => {
  const stage = new Stage();
  const client = stage.client({ subject: "ann", token: "token" });
  client.connect();
  await settle();
  stage.socket.welcome(15_000, { subject: "bob" });
  expect(client.error).toMatchObject({ code: "another_subject" });
});

test("a right that is lost closes the session, and what was kept of it is forgotten", async () => {
  const map = memoryMap();
  const { session, socket } = await liveStage({ store: keepIn(map) });
  session.save();
  await settle();
  expect((await map.readAll("")).length).toBe(1);
  socket.say("closed", 7, "forbidden", false);
  await settle();
  expect(session.error).toMatchObject({ code: "session_closed", details: { reason: "forbidden" } });
  expect(await map.readAll("")).toEqual([]);
});
