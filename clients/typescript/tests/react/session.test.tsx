// @vitest-environment happy-dom
/** Sessions in components: what they see, and how often. */
import { act } from "@testing-library/react";
import { memo } from "react";
import { expect, test, vi } from "vitest";
import { type Message, MidstreamError, type Session } from "../../src/index.js";
import { type OpenSession, useConnection, useSession, useSessionValue } from "../../src/react/index.js";
import { agentMessage, info, liveStage, reset, Stage, settle, userMessage } from "../client/stage.js";
import { answerSubscribe, drawFrames, frame, framesAsked, happens, show, textOf } from "./screen.js";

drawFrames();

type Seen = (snapshot: OpenSession) => void;

/** Shows the texts of a session, and tells of each render. */
function Texts({ id = "s", seen }: { readonly id?: string; readonly seen?: Seen }) {
  const snapshot = useSession(id);
  seen?.(snapshot);
  return <p>{snapshot.messages.map(textOf).join("|")}</p>;
}

type Line = { readonly message: Message; readonly seen: (text: string) => void };
const Line = memo(({ message, seen }: Line) => {
  seen(textOf(message));
  return <li>{textOf(message)}</li>;
});

function Lines({ seen }: { readonly seen: (text: string) => void }) {
  const { messages } = useSession("s");
  return messages.map((message) => <Line key={message.message_id} message={message} seen={seen} />);
}

test("what comes is shown with the next frame, and not before", async () => {
  const { client, socket } = await liveStage();
  const { container } = show(client, <Texts />);
  expect(container.textContent).toBe("Hell");
  await happens(() => socket.say("d", 7, 6, 10, 1, 1, "o"));
  expect(container.textContent).toBe("Hell");
  await frame();
  expect(container.textContent).toBe("Hello");
});

test("however much comes, there is one look and one render for a frame, and the work grows with the text", {
  timeout: 60_000,
}, async () => {
  const { client, session, socket } = await liveStage();
  const renders = vi.fn();
  const { container } = show(client, <Texts seen={renders} />);
  renders.mockClear();
  const looks = vi.spyOn(session, "messages", "get");
  const frames = 50;
  for (let version = 6; version < 100_006; version++) {
    socket.say("d", 7, version, 10, 1, 1, "o");
    if (version % (100_000 / frames) === 0) {
      expect(framesAsked()).toBe(1);
      await frame();
    }
  }
  await frame();
  expect(container.textContent).toBe(`Hell${"o".repeat(100_000)}`);
  expect(new Set(renders.mock.calls.map(([snapshot]) => snapshot)).size).toBe(frames + 1);
  expect(renders).toHaveBeenCalledTimes(2 * (frames + 1)); // StrictMode renders twice
  expect(looks).toHaveBeenCalledTimes(frames + 1);
  expect(framesAsked()).toBe(0);
});

test("only the message that streams renders again", async () => {
  const { client, socket } = await liveStage();
  await happens(() =>
    socket.say(
      "sync",
      7,
      reset(6, [userMessage(1, 2, "one"), userMessage(2, 3, "two"), agentMessage(3, 6, "thr")]),
    ),
  );
  const seen = vi.fn();
  const { container } = show(client, <Lines seen={seen} />);
  seen.mockClear();
  for (const [at, text] of ["e", "e", "!"].entries()) {
    socket.say("d", 7, 7 + at, 10, 3, 1, text);
    await frame();
  }
  expect(container.textContent).toBe("onetwothree!");
  expect(new Set(seen.mock.calls.map(([text]) => text))).toEqual(new Set(["thre", "three", "three!"]));
});

test("messages, turns, queue and interactions that did not change are the same objects", async () => {
  const { client, socket } = await liveStage();
  const seen: OpenSession[] = [];
  show(client, <Texts seen={(snapshot) => seen.push(snapshot)} />);
  const before = seen.at(-1);
  socket.say("d", 7, 6, 10, 1, 1, "o");
  await frame();
  const now = seen.at(-1);
  expect(now?.messages).not.toBe(before?.messages);
  for (const name of ["turns", "queue", "interactions", "pending", "info"] as const) {
    expect(now?.[name]).toBe(before?.[name]);
  }
  // the subscription is renewed, and nothing came of that
  socket.say("closed", 7, "overloaded", true);
  socket.answer("subscribe", { channel: 8, sync: { mode: "catchup", from: 6, epoch: "e1", version: 6 } });
  expect(framesAsked()).toBe(1);
  await frame();
  expect(seen.at(-1)).toBe(now); // no render, and no other snapshot
});

type Version = { readonly session: Session; readonly seen: (version: number) => void };
function Version({ session, seen }: Version) {
  seen(useSessionValue(session, ({ version }) => version));
  return null;
}

test("components that show one session show the same snapshot, also one that comes in between", async () => {
  const { client, session, socket } = await liveStage();
  const seen = [vi.fn(), vi.fn(), vi.fn()] as const;
  const all = (isLate: boolean) => (
    <>
      <Texts seen={({ version }) => seen[0](version)} />
      <Version session={session} seen={seen[1]} />
      {isLate && <Texts seen={({ version }) => seen[2](version)} />}
    </>
  );
  const { rerender } = show(client, all(false));
  socket.say("d", 7, 6, 10, 1, 1, "o");
  rerender(all(true)); // its first render is before the frame
  expect(seen.map((one) => one.mock.lastCall)).toEqual([[5], [5], [5]]);
  await frame();
  expect(seen.map((one) => one.mock.lastCall)).toEqual([[6], [6], [6]]);
});

test("a hidden page draws no frames, and is told all the same", async () => {
  const { client, socket } = await liveStage();
  const { container } = show(client, <Texts />);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    socket.say("d", 7, 6, 10, 1, 1, "o");
    act(() => vi.advanceTimersByTime(250));
    expect(container.textContent).toBe("Hello");
    expect(framesAsked()).toBe(0); // the frame is not waited for any more
  } finally {
    vi.useRealTimers();
  }
});

test("where there are no frames, a timer stands in", async () => {
  vi.stubGlobal("requestAnimationFrame", undefined);
  const { client, socket } = await liveStage();
  const { container } = show(client, <Texts />);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    socket.say("d", 7, 6, 10, 1, 1, "o");
    act(() => vi.advanceTimersByTime(16));
    expect(container.textContent).toBe("Hello");
  } finally {
    vi.useRealTimers();
  }
});

function Phase({ session, seen }: { readonly session: Session; readonly seen: (value: unknown) => void }) {
  seen(useSessionValue(session, ({ turn, messages }) => [turn?.phase, messages.length], isSameList));
  return null;
}

const isSameList = (before: readonly unknown[], now: readonly unknown[]) => `${before}` === `${now}`;

test("a value of a session renders again only when it is another", async () => {
  const { client, session, socket } = await liveStage();
  const seen = vi.fn();
  show(client, <Phase session={session} seen={seen} />);
  seen.mockClear();
  for (let version = 6; version < 16; version++) {
    socket.say("d", 7, version, 10, 1, 1, "o");
    await frame();
  }
  expect(seen).not.toHaveBeenCalled();
  const turn = {
    turn_id: "t",
    revision: 16,
    state: "running",
    phase: "streaming",
    phase_since: 1,
    started_at: 1,
  };
  socket.say("change", 7, 16, true, {
    turns: [turn],
    session: info(16, { running_turn_id: "t", message_count: 1 }),
  });
  await frame();
  expect(new Set(seen.mock.calls.map(([value]) => String(value)))).toEqual(new Set(["streaming,1"]));
});

const asking = (revision: number, status: string) => ({
  sequence: 1,
  revision,
  updated_at: 200,
  part_count: 2,
  parts: [
    {
      type: "interaction",
      part_id: "p2",
      sequence: 2,
      interaction_id: "i",
      interaction_type: "approval",
      status,
      request: { title: "Delete it?" },
      ...(status === "resolved" && {
        response: { kind: "approval", decision: "approved" },
        resolved_by: "ann",
        resolved_at: 200,
      }),
    },
  ],
});

test("a question that waits is listed with its message, until it is answered anywhere", async () => {
  const { client, socket } = await liveStage();
  const seen: OpenSession[] = [];
  show(client, <Texts seen={(snapshot) => seen.push(snapshot)} />);
  const state = (revision: number, pending_interactions: number) =>
    info(revision, { message_count: 1, pending_interactions });
  socket.say("change", 7, 6, true, { messages: [asking(6, "pending")], session: state(6, 1) });
  await frame();
  const interactions = seen.at(-1)?.interactions;
  expect(interactions).toMatchObject([{ message: { message_id: "m1" }, part: { interaction_id: "i" } }]);
  socket.say("change", 7, 7, true, { session: { ...state(7, 1), title: "other" } });
  await frame();
  expect(seen.at(-1)?.info?.title).toBe("other");
  expect(seen.at(-1)?.interactions).toBe(interactions);
  const [asked] = asking(8, "pending").parts;
  const next = { ...asked, part_id: "p3", sequence: 3, interaction_id: "j" };
  const resolved = asking(8, "resolved");
  const both = { ...resolved, part_count: 3, parts: [...resolved.parts, next] };
  socket.say("change", 7, 8, true, { messages: [both], session: state(8, 1) });
  await frame();
  expect(seen.at(-1)?.interactions.map(({ part }) => part.interaction_id)).toEqual(["j"]);
  const last = {
    ...resolved,
    revision: 9,
    part_count: 3,
    parts: [{ ...next, status: "expired", resolved_at: 9 }],
  };
  socket.say("change", 7, 9, true, { messages: [last], session: state(9, 0) });
  await frame();
  expect(seen.at(-1)?.interactions).toEqual([]);
});

function Failing({ id }: { readonly id: string }) {
  const { state, error, messages, reopen } = useSession(id);
  return (
    <button type="button" onClick={reopen}>
      {state} {error?.code} {messages.map(textOf)}
    </button>
  );
}

test("a session that is not there says so, and can be opened again", async () => {
  const { client, socket } = await liveStage();
  const { container, getByRole } = show(client, <Failing id="none" />);
  await happens(() => socket.refuse("subscribe", "not_found"));
  await frame();
  expect(container.textContent).toBe("closed not_found ");
  await happens(() => getByRole("button").click());
  await happens(() => answerSubscribe(socket, "none", 8, reset(1, [], { ...info(1), session_id: "none" })));
  await frame();
  expect(container.textContent).toBe("live  ");
});

test("a session that was deleted says so, and one who comes back later asks for it anew", async () => {
  const { client, socket } = await liveStage();
  const { container, rerender } = show(client, <Failing id="s" />);
  await happens(() => socket.say("closed", 7, "deleted", false));
  await frame();
  expect(container.textContent).toBe("closed session_closed Hell");
  rerender(<p>elsewhere</p>);
  const asked = socket.calls("subscribe").length;
  rerender(<Failing id="s" />);
  await happens(() => undefined);
  expect(socket.calls("subscribe").length).toBe(asked + 1);
});

test("with a client that is closed there is nothing to open, and why is said", async () => {
  const { client, socket } = await liveStage();
  socket.end(4500, "because");
  const { container } = show(client, <Failing id="other" />);
  expect(container.textContent).toBe("closed connection_rejected ");
  expect(client.error).toBeInstanceOf(MidstreamError);
});

function Link() {
  const { state, problem, welcome } = useConnection();
  return (
    <p>
      {state} {problem} {welcome?.connection_id}
    </p>
  );
}

test("the connection is told as it is, and the provider has it made", async () => {
  const stage = new Stage();
  const { container } = show(stage.client(), <Link />);
  await happens(() => undefined);
  expect(container.textContent).toBe("connecting  ");
  await happens(() => stage.socket.welcome());
  await frame();
  expect(container.textContent).toBe("live  c");
  await happens(() => stage.socket.end(1006, "cut"));
  await frame();
  expect(container.textContent).toMatch(/^offline .*cut.* c$/);
  await settle();
});
