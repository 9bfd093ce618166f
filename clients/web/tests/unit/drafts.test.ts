// @vitest-environment happy-dom
import { act, renderHook } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { forgetFresh, freshTitle, rememberFresh, titleOf } from "../../src/app/fresh.js";
import { kept, readNumbers } from "../../src/app/kept.js";
import { draftOf, keepDraft, withReturned } from "../../src/composer/drafts.js";
import { rememberSent, sentText } from "../../src/composer/sent.js";
import { useDraft } from "../../src/composer/use_draft.js";

beforeEach(() => localStorage.clear());

describe("drafts", () => {
  it("each keystroke is kept, for its own chat alone", () => {
    const { result } = renderHook(() => useDraft("a"));
    act(() => result.current[1]("written"));
    expect(draftOf("a")).toBe("written");
    expect(draftOf("b")).toBe("");
    expect(renderHook(() => useDraft("a")).result.current[0]).toBe("written"); // the page after a reload
  });

  it("a text that comes back does not replace what was typed since", () => {
    const { result } = renderHook(() => useDraft("a"));
    act(() => result.current[1]("typed since"));
    act(() => result.current[1]((now) => withReturned(now, "came back")));
    expect(result.current[0]).toBe("came back\n\ntyped since");
    expect(withReturned("", "came back")).toBe("came back");
  });

  it("an empty draft leaves nothing behind", () => {
    keepDraft("a", "x");
    keepDraft("a", "");
    expect(localStorage.length).toBe(0);
  });
});

describe("what is kept", () => {
  it("another tab's change is told", () => {
    const value = kept("counts", readNumbers);
    let told = 0;
    const stop = value.subscribe(() => told++);
    localStorage.setItem("midstream.counts", '{"a":2}');
    dispatchEvent(new StorageEvent("storage", { key: "midstream.counts" }));
    expect([told, value.get()]).toEqual([1, { a: 2 }]);
    stop();
  });

  it("what is no such value is read as far as it is one", () => {
    localStorage.setItem("midstream.bad", '{"a":2,"b":"x"}');
    expect(kept("bad", readNumbers).get()).toEqual({ a: 2 });
    localStorage.setItem("midstream.worse", "{");
    expect(kept("worse", readNumbers).get()).toEqual({});
  });

  it("the text of a sent prompt is known while it waits", () => {
    rememberSent("m", [{ type: "text", text: "hello" }]);
    expect(sentText("m")).toBe("hello");
    expect(sentText("another")).toBeUndefined();
  });
});

describe("a chat that begins", () => {
  it("is remembered until the server has it and its title", () => {
    rememberFresh("s", "Hello there\nsecond line");
    expect(freshTitle("s")).toBe("Hello there");
    forgetFresh("s");
    expect(freshTitle("s")).toBeUndefined();
  });

  it("gets a title of one line that is cut between words, never within a character", () => {
    const title = titleOf(`${"many words ".repeat(20)}`);
    expect([...title].length).toBeLessThanOrEqual(61);
    expect(title.endsWith("words…") || title.endsWith("many…")).toBe(true);
    expect(titleOf("🚢".repeat(80))).toBe(`${"🚢".repeat(60)}…`);
  });
});
