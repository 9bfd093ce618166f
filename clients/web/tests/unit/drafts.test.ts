// @vitest-environment happy-dom
import { act, renderHook } from "@testing-library/react";
import { MidstreamError } from "midstream-client";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { forgetFresh, freshTitle, rememberFresh, titleOf } from "../../src/app/fresh.js";
import { kept, readNumbers } from "../../src/app/kept.js";
import { draftOf, keepDraft, NEW_CHAT, withReturned } from "../../src/composer/drafts.js";
import { forgetSent, rememberSent, sentText, wholeSentText } from "../../src/composer/sent.js";
import { useDraft } from "../../src/composer/use_draft.js";
import { moveUnsent } from "../../src/conversation/unsent.js";

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

  it("another tab's change is not undone by a change here", () => {
    rememberFresh("here", "begun here");
    const stored = JSON.parse(localStorage.getItem("midstream.fresh") ?? "");
    localStorage.setItem("midstream.fresh", JSON.stringify({ ...stored, there: "begun in another tab" }));
    rememberFresh("again", "begun here too");
    expect(["here", "there", "again"].map(freshTitle)).toEqual([
      "begun here",
      "begun in another tab",
      "begun here too",
    ]);
  });

  it("where the browser keeps nothing, this page still knows", () => {
    const full = vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
      throw new DOMException("full", "QuotaExceededError");
    });
    rememberFresh("s", "begun here");
    expect(freshTitle("s")).toBe("begun here");
    full.mockRestore();
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

  it("a long text comes back whole, and is shown by its beginning", () => {
    const text = "word ".repeat(5000);
    rememberSent("long", [{ type: "text", text }]);
    expect(sentText("long")?.length).toBe(4000);
    expect(wholeSentText("long")).toBe(text);
    forgetSent("long");
    expect(wholeSentText("long")).toBeUndefined();
  });
});

describe("what was written to a chat that is gone", () => {
  const prompt = (message_id: string, text: string) =>
    ({ session_id: "s", message_id, parts: [{ type: "text", text }], delivery: "auto" }) as const;
  const deleted = new MidstreamError("session_closed", "x", { reason: "deleted" });

  it("is where a new chat is written, whole and once, above what stands there", () => {
    const text = "word ".repeat(5000);
    keepDraft(NEW_CHAT, "begun");
    keepDraft("s", "half a thought");
    const unsent = [prompt("m1", text), prompt("m2", "more")];
    expect(moveUnsent("s", unsent, deleted)).toBe(true);
    expect(moveUnsent("s", unsent, deleted)).toBe(false);
    expect(draftOf(NEW_CHAT)).toBe(`${text}\n\nmore\n\nhalf a thought\n\nbegun`);
    expect(draftOf("s")).toBe("");
  });

  it("stays with the chat where that may come back, or will be sent", () => {
    keepDraft("s", "half a thought");
    expect(moveUnsent("s", [], new MidstreamError("not_found", "x"))).toBe(false);
    expect(moveUnsent("s", [prompt("m3", "x")], new MidstreamError("internal", "x"))).toBe(false);
    expect([draftOf("s"), draftOf(NEW_CHAT)]).toEqual(["half a thought", ""]);
  });
});

describe("a chat that begins", () => {
  it("is remembered until the server has it and its title", () => {
    rememberFresh("s", "Hello there\nsecond line");
    expect(freshTitle("s")).toBe("Hello there");
    forgetFresh("s");
    expect(freshTitle("s")).toBeUndefined();
  });

  it("is not one of which this browser knows nothing, whatever its id", () => {
    for (const id of ["__proto__", "constructor", "toString"]) {
      expect([freshTitle(id), sentText(id)]).toEqual([undefined, undefined]);
      rememberFresh(id, "begun");
      expect(freshTitle(id)).toBe("begun");
      forgetFresh(id);
      expect(freshTitle(id)).toBeUndefined();
    }
  });

  it("gets a title of one line that is cut between words, never within a character", () => {
    const title = titleOf(`${"many words ".repeat(20)}`);
    expect([...title].length).toBeLessThanOrEqual(61);
    expect(title.endsWith("words…") || title.endsWith("many…")).toBe(true);
    expect(titleOf("🚢".repeat(80))).toBe(`${"🚢".repeat(60)}…`);
  });
});
