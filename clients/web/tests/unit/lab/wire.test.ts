import fc from "fast-check";
import { expect, test } from "vitest";
import { type Passage, Wire } from "../../../src/lab/wire.js";
import { HandClock } from "./clock.js";

function stage() {
  const clock = new HandClock();
  let passage: Passage = { isFrozen: false, delayMs: 0 };
  const wire = new Wire(clock, () => passage);
  const passed: number[] = [];
  return {
    clock,
    wire,
    passed,
    put: (value: number) => wire.put(() => passed.push(value)),
    set(change: Partial<Passage>) {
      passage = { ...passage, ...change };
      wire.pump();
    },
  };
}

test("without a fault a message passes at once", () => {
  const { put, passed } = stage();
  put(1);
  expect(passed).toEqual([1]);
});

test("a delayed message is late by exactly the delay", () => {
  const { put, passed, set, clock } = stage();
  set({ delayMs: 100 });
  put(1);
  clock.pass(99);
  expect(passed).toEqual([]);
  clock.pass(1);
  expect(passed).toEqual([1]);
});

test("nothing passes a frozen wire, and all of it passes when it thaws", () => {
  const { put, passed, set, clock } = stage();
  set({ isFrozen: true });
  put(1);
  put(2);
  clock.pass(3_600_000);
  expect(passed).toEqual([]);
  set({ isFrozen: false });
  expect(passed).toEqual([1, 2]);
});

test("messages keep their order, whatever is done to the wire", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("put" as const) }),
    fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: 300 }) }),
    fc.record({ kind: fc.constant("delay" as const), ms: fc.constantFrom(0, 50, 200) }),
    fc.record({ kind: fc.constant("freeze" as const), on: fc.boolean() }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { put, passed, set, clock } = stage();
      let count = 0;
      for (const one of steps) {
        if (one.kind === "put") {
          put(count++);
        } else if (one.kind === "pass") {
          clock.pass(one.ms);
        } else if (one.kind === "delay") {
          set({ delayMs: one.ms });
        } else {
          set({ isFrozen: one.on });
        }
      }
      set({ isFrozen: false });
      clock.pass(1000);
      expect(passed).toEqual(Array.from({ length: count }, (_, index) => index));
    }),
  );
});
