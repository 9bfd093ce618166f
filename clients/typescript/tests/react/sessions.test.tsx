// @vitest-environment happy-dom
/** The list of sessions in components. */
import { act } from "@testing-library/react";
import { memo } from "react";
import { expect, test, vi } from "vitest";
import type { SessionInfo } from "../../src/index.js";
import { useSessions } from "../../src/react/index.js";
import { info, Stage } from "../client/stage.js";
import { drawFrames, frame, happens, show } from "./screen.js";

drawFrames();

const listed = (id: string, updated_at: number, more: object = {}) =>
  info(1, { session_id: id, updated_at, ...more });

type Row = { readonly session: SessionInfo; readonly seen: ((id: string) => void) | undefined };
const Row = memo(({ session, seen }: Row) => {
  seen?.(session.session_id);
  const { session_id, running_turn_id, pending_interactions = 0 } = session;
  return <li>{`${session_id}${running_turn_id ? " runs" : ""}${pending_interactions ? " asks" : ""};`}</li>;
});

function List({ archived = false, seen }: { readonly archived?: boolean; readonly seen?: Row["seen"] }) {
  const { sessions, state, error, hasMore, loadMore, reopen } = useSessions({ archived });
  return (
    <>
      {sessions.map((session) => (
        <Row key={session.session_id} session={session} seen={seen} />
      ))}
      <p>
        {state} {error?.code}
      </p>
      <button type="button" onClick={reopen}>
        again
      </button>
      {hasMore && (
        <button type="button" onClick={() => void loadMore()}>
          more
        </button>
      )}
    </>
  );
}

async function shownList(seen?: Row["seen"]) {
  const stage = new Stage();
  const client = stage.client();
  const shown = show(client, <List seen={seen} />);
  await happens(() => undefined);
  await happens(() => stage.socket.welcome());
  const items = [listed("b", 20), listed("a", 10)];
  await happens(() => stage.socket.answer("sessions.watch", { items, next_after: "a" }));
  await frame();
  return { stage, client, socket: stage.socket, ...shown };
}

test("the list is shown as the server has it, and what runs and asks", async () => {
  const { socket, container } = await shownList();
  expect(container.textContent).toContain("b;a;live");
  const changed = [listed("a", 30, { revision: 2, running_turn_id: "t", pending_interactions: 1 })];
  await happens(() => socket.say("sessions", { changed }));
  await frame();
  expect(container.textContent).toContain("a runs asks;b;live");
  await happens(() => socket.say("sessions", { removed: ["b"] }));
  await frame();
  expect(container.textContent).toMatch(/^a runs asks;live/);
});

test("only the row of a session that changed renders again", async () => {
  const seen = vi.fn();
  const { socket } = await shownList(seen);
  seen.mockClear();
  await happens(() => socket.say("sessions", { changed: [listed("b", 30, { revision: 2 })] }));
  await frame();
  expect(new Set(seen.mock.calls.flat())).toEqual(new Set(["b"]));
});

test("more is loaded where there is more", async () => {
  const { socket, container, getByText } = await shownList();
  await happens(() => getByText("more").click());
  await happens(() => socket.answer("sessions.list", { items: [listed("old", 5)] }));
  await frame();
  expect(container.textContent).toBe("b;a;old;live again");
});

test("components share a list, which is given up half a minute after the last", async () => {
  const { socket, rerender } = await shownList();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    rerender([<List key="1" />, <List key="2" />]);
    expect(socket.calls("sessions.watch").length).toBe(1);
    rerender(null);
    act(() => vi.advanceTimersByTime(29_000));
    expect(socket.calls("sessions.unwatch").length).toBe(0);
    act(() => vi.advanceTimersByTime(2000));
    expect(socket.calls("sessions.unwatch").length).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test("a list that is refused says why, and can be asked for again", async () => {
  const stage = new Stage();
  const { container, getByText } = show(stage.client(), <List />);
  await happens(() => undefined);
  await happens(() => stage.socket.welcome());
  await happens(() => stage.socket.refuse("sessions.watch", "forbidden"));
  await frame();
  expect(container.textContent).toContain("closed forbidden");
  await happens(() => getByText("again").click());
  await happens(() => stage.socket.answer("sessions.watch", { items: [listed("a", 1)] }));
  await frame();
  expect(container.textContent).toContain("a;live");
});
