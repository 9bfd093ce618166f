import type { SessionInfo } from "midstream-client";
import { expect, test } from "vitest";
import { keepable, readList } from "../../src/sidebar/kept_list.js";

const session = (id: string, more: Partial<SessionInfo> = {}): SessionInfo => ({
  session_id: id,
  revision: 3,
  created_at: 1,
  updated_at: 2,
  message_count: 4,
  ...more,
});

test("what a chat does now is not kept: it would be old when it is read", () => {
  const busy = session("a", { title: "A", running_turn_id: "t", queue: ["m"], pending_interactions: 1 });
  expect(keepable([busy])).toEqual([session("a", { title: "A" })]);
});

test("a hundred chats are kept", () => {
  const all = Array.from({ length: 150 }, (_, index) => session(`s${index}`));
  expect(keepable(all).map((one) => one.session_id)).toEqual(all.slice(0, 100).map((one) => one.session_id));
});

test("what was kept is read again, and anything else in its place is left out", () => {
  const good = session("a", { title: "A" });
  const bad = [
    null,
    7,
    "a",
    {},
    { ...good, title: {} },
    { ...good, updated_at: "now" },
    { ...good, session_id: 1 },
  ];
  expect(readList(JSON.parse(JSON.stringify([...bad, good])))).toEqual([good]);
  for (const other of [undefined, null, {}, "list"]) {
    expect(readList(other)).toEqual([]);
  }
});
