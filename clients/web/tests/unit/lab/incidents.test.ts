import { expect, test } from "vitest";
import {
  begin,
  caughtUp,
  type Incidents,
  missed,
  received,
  returned,
  synced,
  verified,
} from "../../../src/lab/incidents.js";

const cut = begin([], "cut", 1000);

test("what the control gets while the page is away is what was missed, and no more", () => {
  let all: Incidents = missed(cut, 700);
  all = missed(returned(all), 50);
  expect(all[0]).toMatchObject({ missedBytes: 700, catchUpBytes: 0 });
});

test("what the page gets counts only from its return to its end", () => {
  let all = received(cut, 10);
  all = received(returned(all), 300);
  all = received(caughtUp(all, 4000), 99);
  expect(all[0]).toMatchObject({ catchUpBytes: 300, endedAt: 4000, stage: "over" });
});

test("a fault during a catch-up belongs to the same incident, which begins to count anew", () => {
  let all = received(returned(missed(cut, 100)), 40);
  all = begin(all, "dropped", 2000);
  expect(all).toHaveLength(1);
  expect(all[0]).toMatchObject({ fault: "cut", stage: "away", missedBytes: 100, catchUpBytes: 0 });
});

test("the first sync after the return names the mode; without one the frames were only late", () => {
  expect(synced(cut, "reset")[0]?.mode).toBeUndefined();
  const back = synced(synced(returned(cut), "replay"), "reset");
  expect(caughtUp(back, 2000)[0]?.mode).toBe("replay");
  expect(caughtUp(returned(cut), 2000)[0]?.mode).toBe("late");
});

test("a proof goes to its own incident, though another has begun", () => {
  const all = begin(caughtUp(returned(cut), 2000), "frozen", 3000);
  expect(verified(all, 1, true).map(({ isEqual }) => isEqual)).toEqual([undefined, true]);
});

test("no more than twenty incidents are kept", () => {
  let all: Incidents = [];
  for (let count = 0; count < 50; count++) {
    all = caughtUp(returned(begin(all, "cut", count)), count);
  }
  expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, index) => 50 - index));
});
