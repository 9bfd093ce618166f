import { describe, expect, it } from "vitest";
import { daysBefore, groupByDay, groupLabel, matches } from "../../src/sidebar/groups.js";
import { session } from "./messages.js";

const now = new Date(2026, 4, 20, 0, 30).getTime();
const days = (count: number) => new Date(2026, 4, 20 - count, 23, 30).getTime();

describe("chats by day", () => {
  it("a day is one of the calendar, not 24 hours", () => {
    expect(daysBefore(now, days(1))).toBe(1); // an hour before
    expect(groupLabel(now, days(1))).toBe("Yesterday");
  });

  it("the label says how long ago in ever wider words", () => {
    expect([0, 1, 2, 7, 8, 30].map((count) => groupLabel(now, days(count)))).toEqual([
      "Today",
      "Yesterday",
      "Previous 7 days",
      "Previous 7 days",
      "Previous 30 days",
      "Previous 30 days",
    ]);
    expect(groupLabel(now, new Date(2026, 1, 3).getTime(), "en")).toBe("February");
    expect(groupLabel(now, new Date(2025, 1, 3).getTime(), "en")).toBe("February 2025");
  });

  it("a server's clock that is ahead is still today", () => {
    expect(groupLabel(now, now + 90_000_000)).toBe("Today");
  });

  it("groups keep the order of the list", () => {
    const list = [days(0), days(0), days(1), days(40)].map((at, index) =>
      session(`${index}`, { updated_at: at }),
    );
    expect(groupByDay(list, now, "en").map((one) => [one.label, one.sessions.length])).toEqual([
      ["Today", 2],
      ["Yesterday", 1],
      ["April", 1],
    ]);
  });
});

describe("search", () => {
  it("finds all words in any order, whatever their case and accents", () => {
    const chat = session("a", { title: "Café au lait, Zürich" });
    expect(matches(chat, "zurich CAFE")).toBe(true);
    expect(matches(chat, "cafe berlin")).toBe(false);
  });

  it("finds a chat without a title by what it is called on the page", () => {
    expect(matches(session("a"), "untitled")).toBe(true);
  });
});
