import { describe, expect, it } from "vitest";
import { type Key, pageCommand, writingCommand } from "../../src/app/keyboard.js";

const key = (name: string, more: Partial<Key> = {}): Key => ({
  key: name,
  ctrlKey: false,
  metaKey: false,
  shiftKey: false,
  altKey: false,
  isComposing: false,
  ...more,
});

describe("keys in a message", () => {
  it("Enter sends, Shift+Enter is a new line, Esc leaves", () => {
    expect(writingCommand(key("Enter"))).toBe("send");
    expect(writingCommand(key("Enter", { shiftKey: true }))).toBeUndefined();
    expect(writingCommand(key("Escape"))).toBe("leave");
  });

  it("an Enter that ends a composed word sends nothing", () => {
    expect(writingCommand(key("Enter", { isComposing: true }))).toBeUndefined();
  });
});

describe("keys of the page", () => {
  it("⌘K and Ctrl-K open the palette, while writing too", () => {
    expect(pageCommand(key("k", { metaKey: true }), true)).toBe("palette");
    expect(pageCommand(key("K", { ctrlKey: true }), false)).toBe("palette");
  });

  it("a slash goes to the composer, but is a character where one writes", () => {
    expect(pageCommand(key("/"), false)).toBe("focus-composer");
    expect(pageCommand(key("/"), true)).toBeUndefined();
  });

  it("a plain k, and other shortcuts of the browser, are nothing", () => {
    expect(pageCommand(key("k"), false)).toBeUndefined();
    expect(pageCommand(key("k", { ctrlKey: true, shiftKey: true }), false)).toBeUndefined();
    expect(pageCommand(key("k", { ctrlKey: true, altKey: true }), false)).toBeUndefined();
  });
});
