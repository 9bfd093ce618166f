// @vitest-environment happy-dom
/** Sessions in components: who has them open, and for how long. */
import { act } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Client, Session } from "../../src/index.js";
import { type OpenSession, useSession } from "../../src/react/index.js";
import { agentMessage, type FakeSocket, info, reset, Stage, settle } from "../client/stage.js";
import { answerSubscribe, drawFrames, frame, happens, show, textOf } from "./screen.js";

drawFrames();
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The half minute, and a little. */
const LATER_MS = 31_000;

const later = () => act(() => vi.advanceTimersByTime(LATER_MS));

function Chat({
  id,
  seen,
}: {
  readonly id: string;
  readonly seen?: (id: string, shown: OpenSession) => void;
}) {
  const shown = useSession(id);
  seen?.(id, shown);
  return <p>{shown.messages.map(textOf).join("|")}</p>;
}

const held = (sessionId: string, text: string, more: object = {}) => {
  const sync = reset(5, [{ ...agentMessage(1, 5, text), session_id: sessionId }], {
    ...info(5),
    session_id: sessionId,
    ...more,
  });
  return sync;
};

const TURN = {
  turn_id: "t",
  revision: 5,
  state: "running",
  phase: "streaming",
  phase_since: 1,
  started_at: 1,
};

async function connected(): Promise<{ stage: Stage; client: Client; socket: FakeSocket }> {
  const stage = new Stage();
  const client = stage.client();
  client.connect();
  await settle();
  stage.socket.welcome();
  return { stage, client, socket: stage.socket };
}

/** A chat `a` on the screen, live. */
async function shownChat(more: object = {}, turns: object[] = []) {
  const all = await connected();
  const { socket, client } = all;
  const shown = show(client, <Chat id="a" />);
  await happens(() => undefined);
  await happens(() => answerSubscribe(socket, "a", 1, { ...held("a", "Hell", more), turns }));
  await frame();
  expect(shown.container.textContent).toBe("Hell");
  return { ...all, ...shown };
}

const closes = (socket: FakeSocket) => socket.calls("unsubscribe").map(({ params }) => params.session_id);

test("a session without users is kept for half a minute, then closed", async () => {
  const { socket, rerender } = await shownChat();
  rerender(<p />);
  act(() => vi.advanceTimersByTime(29_000));
  expect(closes(socket)).toEqual([]);
  act(() => vi.advanceTimersByTime(1000));
  expect(closes(socket)).toEqual(["a"]);
});

test("who comes back within that time finds it open, and what came meanwhile", async () => {
  const { socket, rerender, container } = await shownChat();
  rerender(<p />);
  socket.say("d", 1, 6, 10, 1, 1, "o");
  rerender(<Chat id="a" />);
  expect(container.textContent).toBe("Hello");
  later();
  later();
  expect(closes(socket)).toEqual([]);
  expect(socket.calls("subscribe").length).toBe(1);
});

test("two components share a session, and it stays while one is there", async () => {
  const { socket, client, rerender } = await shownChat();
  rerender([<Chat key="1" id="a" />, <Chat key="2" id="a" />]);
  rerender([<Chat key="2" id="a" />]);
  later();
  expect(closes(socket)).toEqual([]);
  expect(socket.calls("subscribe").length).toBe(1);
  expect(client.open("a").state).toBe("live");
});

test("a session that somebody else asked the client for is never closed by components", async () => {
  const { socket, client, rerender } = await shownChat();
  const session = client.open("a");
  rerender(<p />);
  later();
  later();
  expect(session.state).toBe("live");
  expect(closes(socket)).toEqual([]);
});

test("mounting twice, unmounting and going elsewhere stop no turn, and close nothing that has one", async () => {
  const more = { running_turn_id: "t" };
  const { socket, rerender, unmount } = await shownChat(more, [TURN]);
  rerender(<p />);
  later();
  rerender(<Chat id="a" />);
  unmount();
  later();
  later();
  expect(closes(socket)).toEqual([]);
  expect(socket.tags().filter((tag) => tag === "call").length).toBe(1); // the subscription, and nothing else
  const ended = { ...TURN, revision: 6, state: "completed", finished_at: 2 };
  socket.say("change", 1, 6, true, {
    turns: [ended],
    session: { ...info(6), session_id: "a", message_count: 1 },
  });
  later();
  expect(closes(socket)).toEqual(["a"]);
});

test("a prompt that the server has not accepted outlives its components", async () => {
  const { stage, client, socket, unmount } = await shownChat();
  let session: Session | undefined;
  const seen = (_: string, shown: OpenSession) => {
    session = shown.session;
  };
  unmount();
  const again = show(client, <Chat id="a" seen={seen} />);
  socket.end();
  await session?.prompt("hello?");
  again.unmount();
  later();
  later();
  expect(session?.pending.length).toBe(1);
  await stage.advance(1000);
  stage.socket.welcome();
  await settle();
  answerSubscribe(stage.socket, "a", 2, held("a", "Hell"));
  await settle();
  expect(stage.socket.calls("prompt").length).toBe(1);
});

test("a render that is never shown keeps nothing open", async () => {
  const { client, socket } = await connected();
  expect(() => show(client, <Throwing />)).toThrow("not shown");
  await settle();
  expect(socket.calls("subscribe").length).toBe(1);
  later();
  expect(client.open("a").asked).toBe(1); // a new one: that of the render is closed
});

function Throwing(): never {
  useSession("a");
  throw new Error("not shown");
}

test("over A, B and A again in mid-turn, each shows its own text in every render, with what came meanwhile", async () => {
  const { client, socket } = await connected();
  const renders: string[] = [];
  const seen = (id: string, { session, messages }: OpenSession) => {
    const held = messages.map((message) => `${message.session_id} ${textOf(message)}`);
    renders.push(`${id}: ${session.sessionId} [${held}]`);
  };
  const chat = (id: string) => <Chat id={id} seen={seen} />;
  const { rerender, container } = show(client, chat("a"));
  await happens(() => undefined);
  await happens(() =>
    answerSubscribe(socket, "a", 1, { ...held("a", "alpha", { running_turn_id: "t" }), turns: [TURN] }),
  );
  await frame();
  socket.say("d", 1, 6, 10, 1, 1, " beta");
  rerender(chat("b"));
  expect(container.textContent).toBe("");
  await happens(() => answerSubscribe(socket, "b", 2, held("b", "other")));
  socket.say("d", 1, 7, 10, 1, 1, " gamma");
  await frame();
  expect(container.textContent).toBe("other");
  later();
  rerender(chat("a"));
  expect(container.textContent).toBe("alpha beta gamma");
  socket.say("d", 1, 8, 10, 1, 1, " delta");
  await frame();
  expect(container.textContent).toBe("alpha beta gamma delta");
  for (const line of renders) {
    expect(line).toMatch(/^a: a \[(a alpha.*)?\]$|^b: b \[(b other)?\]$/);
  }
  expect(socket.calls("subscribe").length).toBe(2);
  expect(socket.calls("stop")).toEqual([]);
});
