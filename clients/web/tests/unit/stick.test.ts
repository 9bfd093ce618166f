import { describe, expect, it } from "vitest";
import { countNew, follows, type Place } from "../../src/conversation/stick.js";

const at = (offset: number, size = 2000, viewport = 500): Place => ({ offset, size, viewport });
const END = at(1500);

describe("following the end", () => {
  it("content that grows below is followed", () => {
    expect(follows(true, END, at(1500, 2400))).toBe(true);
  });

  it("the smallest scroll upwards ends it, also near the end", () => {
    expect(follows(true, END, at(1490))).toBe(false);
  });

  it("scrolling back to the end begins it again", () => {
    expect(follows(false, at(1000), at(1480))).toBe(true);
    expect(follows(false, at(1000), at(1200))).toBe(false);
  });

  it("a list that became shorter is no wish to read above", () => {
    expect(follows(true, END, at(1300, 1800))).toBe(true);
  });

  it("a window that became higher is no wish to read above", () => {
    expect(follows(true, END, at(1400, 2000, 600))).toBe(true);
  });

  it("a reader above the end is not moved by what grows", () => {
    expect(follows(false, at(800), at(800, 2600))).toBe(false);
  });
});

describe("what is new below", () => {
  it("counts what came after the last message that was seen", () => {
    expect(countNew(["a", "b", "c", "d"], "b")).toBe(2);
    expect(countNew(["a", "b"], "b")).toBe(0);
  });

  it("is nothing where it is not known", () => {
    expect(countNew(["a"], undefined)).toBe(0);
    expect(countNew(["a"], "gone")).toBe(0);
  });
});
