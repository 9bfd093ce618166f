import { describe, expect, it } from "vitest";
import { unreadCount, withListed, withSeen } from "../../src/sidebar/unread.js";
import { NOON, session } from "./messages.js";

const old = session("old", { message_count: 4 });
const listed = withListed({}, [old]);

describe("unread chats", () => {
  it("what was there at the first look is no news", () => {
    expect(unreadCount(listed, old)).toBe(0);
  });

  it("messages that came since are counted", () => {
    expect(unreadCount(listed, { ...old, message_count: 6 })).toBe(2);
    expect(unreadCount(withSeen(listed, "old", 6), { ...old, message_count: 6 })).toBe(0);
  });

  it("a chat may have any id", () => {
    for (const id of ["__proto__", "constructor"]) {
      const odd = session(id, { message_count: 4 });
      const known = withListed({}, [odd]);
      expect(unreadCount(known, { ...odd, message_count: 6 })).toBe(2);
      expect(unreadCount(withSeen(known, id, 6), { ...odd, message_count: 6 })).toBe(0);
    }
  });

  it("a rename is no news", () => {
    expect(unreadCount(listed, { ...old, title: "Another", updated_at: NOON + 5000 })).toBe(0);
  });

  it("a chat that began later and was never opened here is news", () => {
    const later = session("later", { created_at: NOON + 1, message_count: 2 });
    expect(unreadCount(withListed(listed, [later, old]), later)).toBe(2);
  });

  it("an old chat that is listed later, by a further page, is no news", () => {
    const older = session("older", { created_at: NOON - 1, message_count: 9 });
    expect(unreadCount(withListed(listed, [old, older]), older)).toBe(0);
  });

  it("a chat that was cleared has nothing unread", () => {
    expect(unreadCount(listed, { ...old, message_count: 0 })).toBe(0);
  });

  it("a record where nothing is new stays the same object", () => {
    const record = withSeen(listed, "old", 4);
    expect(withSeen(record, "old", 4)).toBe(record);
    expect(withListed(record, [old])).toBe(record);
  });
});
