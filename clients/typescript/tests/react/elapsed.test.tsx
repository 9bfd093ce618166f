// @vitest-environment happy-dom
/** Why it is silent, by the server's clock. */
import { act } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useServerClock, useSession, useTurnElapsed } from "../../src/react/index.js";
import { agentMessage, info, reset, Stage, settle } from "../client/stage.js";
import { answerSubscribe, drawFrames, frame, happens, show } from "./screen.js";

drawFrames();
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"], now: 5000 });
});
afterEach(() => {
  vi.useRealTimers();
});

function Silence() {
  const { session } = useSession("s");
  const elapsed = useTurnElapsed(session);
  return <p>{elapsed ? Object.values(elapsed).join(" ") : "quiet"}</p>;
}

/**
 * A turn that waits for the model since 101,000 by the server's clock, which wrote last at 102,000. The
 * client is welcomed at 103,000, where `isEarly` before there are components.
 */
async function shownSilence(isEarly: boolean) {
  const stage = new Stage();
  const client = stage.client();
  const welcome = () => {
    stage.socket.open();
    stage.socket.say("welcome", { heartbeat_ms: 15_000, limits: {}, time: 103_000 });
  };
  if (isEarly) {
    client.connect();
    await settle();
    welcome();
  }
  const shown = show(client, <Silence />);
  await happens(settle);
  if (!isEarly) {
    await happens(welcome);
  }
  const turn = {
    turn_id: "t",
    revision: 5,
    state: "running",
    phase: "waiting-model",
    phase_since: 101_000,
    started_at: 100_000,
  };
  const message = { ...agentMessage(1, 5, "Hell"), updated_at: 102_000 };
  const session = info(5, { running_turn_id: "t" });
  await happens(() =>
    answerSubscribe(stage.socket, "s", 7, { ...reset(5, [message], session), turns: [turn] }),
  );
  await frame();
  return { ...shown, socket: stage.socket, turn, session };
}

test("what a turn does, and since when, is told by the server's clock each second, until it ends", async () => {
  const { container, socket, turn, session } = await shownSilence(false);
  expect(container.textContent).toBe("waiting-model 2000 1000 3000");
  act(() => vi.advanceTimersByTime(1000));
  expect(container.textContent).toBe("waiting-model 3000 2000 4000");
  const ended = { ...turn, revision: 6, state: "completed", finished_at: 104_000 };
  const { running_turn_id: _, ...idle } = session;
  socket.say("change", 7, 6, true, { turns: [ended], session: { ...idle, revision: 6 } });
  await frame();
  expect(container.textContent).toBe("quiet");
  expect(vi.getTimerCount()).toBe(0);
});

test("where the server's clock is not known, no time that it gave is in the future", async () => {
  const { container } = await shownSilence(true);
  expect(container.textContent).toBe("waiting-model 1000 0 2000");
});

function Clock() {
  return <p>{useServerClock()()}</p>;
}

test("a component that comes long after the welcome reads the server's clock as it is then", async () => {
  const stage = new Stage();
  const client = stage.client();
  const { container, rerender } = show(client, null);
  await happens(settle);
  stage.socket.open();
  await happens(() => stage.socket.say("welcome", { heartbeat_ms: 15_000, limits: {}, time: 103_000 }));
  vi.setSystemTime(Date.now() + 600_000);
  rerender(<Clock />);
  expect(container.textContent).toBe("703000");
});
