import { MidstreamError } from "midstream-client";
import { describe, expect, it } from "vitest";
import { parsePath } from "../../src/app/route.js";
import { dataUrlLength, refusal, roomLeft } from "../../src/composer/attachments.js";
import { waitsOf } from "../../src/composer/waits.js";
import { connectionWords } from "../../src/conversation/connection_words.js";
import { endingText, offersRetry } from "../../src/conversation/ending.js";
import { goneWords } from "../../src/conversation/gone_words.js";
import { elapsedText, statusOf } from "../../src/conversation/phase.js";
import { message, turn } from "./messages.js";

const elapsed = (ms: number) => ({ phaseMs: ms, silentMs: ms });

describe("why it is silent", () => {
  it("each phase has its words, and more of them when it takes long", () => {
    const waiting = turn("t", { phase: "waiting-model" });
    expect(statusOf(waiting, [], elapsed(3000))).toMatchObject({ text: "Waiting for the model", ms: 3000 });
    expect(statusOf(waiting, [], elapsed(3000))?.hint).toBeUndefined();
    expect(statusOf(waiting, [], elapsed(11_000))?.hint).toContain("stop it");
  });

  it("a tool that runs is named", () => {
    const tool = {
      type: "tool",
      part_id: "p",
      sequence: 1,
      tool_call_id: "c",
      tool_name: "dice",
      state: "running",
    };
    const last = message(2, { turn_id: "t", parts: [tool as never] });
    expect(statusOf(turn("t", { phase: "running-tool" }), [last], elapsed(0))?.text).toBe("Running dice");
  });

  it("text that arrives needs no words; text that has stopped to arrive does", () => {
    const streaming = turn("t", { phase: "streaming" });
    expect(statusOf(streaming, [], { phaseMs: 60_000, silentMs: 100 })).toBeUndefined();
    expect(statusOf(streaming, [], { phaseMs: 60_000, silentMs: 12_000 })?.ms).toBe(12_000);
  });

  it("a time is said in the largest unit that tells something", () => {
    expect([500, 3000, 65_000, 3_660_000].map(elapsedText)).toEqual(["", "3 s", "1 min 5 s", "1 h 1 min"]);
  });
});

describe("how a turn ended", () => {
  const failure = { code: "agent_lost", message: "raw" };

  it("a known reason is said in words, once", () => {
    const failed = turn("t", { state: "failed", error: failure });
    expect(endingText(failed, message(2))).toContain("The agent was lost");
    const error = { type: "error", scope: "turn", code: "x", message: "m", recoverable: true } as never;
    const told = message(2, { parts: [error] });
    expect(endingText(failed, told)).toBe("");
    expect(offersRetry(failed, told)).toBe(false); // the error's own card offers it
  });

  it("a stopped turn can always be tried again", () => {
    expect(offersRetry(turn("t", { state: "stopped" }), message(2))).toBe(true);
  });
});

describe("the connection in words", () => {
  const connection = (
    state: Parameters<typeof connectionWords>[0]["state"],
    more: Partial<Parameters<typeof connectionWords>[0]> = {},
  ) => ({ state, problem: undefined, error: undefined, refusal: undefined, ...more });

  it("a server that wants a token, or another one, is said, and how to give it", () => {
    for (const refusal of ["unauthorized", "token_expired"] as const) {
      expect(connectionWords(connection("offline", { refusal }))).toMatchObject({ action: "token" });
      expect(connectionWords(connection("live", { refusal }))).toBeUndefined();
    }
  });

  it("nothing is said while it is there", () => {
    expect(connectionWords(connection("live"))).toBeUndefined();
  });

  it("offline says what failed and what happens next", () => {
    const words = connectionWords(connection("offline", { problem: "the line broke" }));
    expect(words?.next).toMatch(/^The line broke\. The page tries again by itself/);
  });

  it("closed for good says what to do", () => {
    const error = new MidstreamError("connection_rejected", "The server refused");
    expect(connectionWords(connection("closed", { error }))).toMatchObject({
      next: "The server refused. Reload the page to connect again; drafts are kept.",
      action: "reload",
    });
  });

  it("a chat that is not there, and one that was deleted, are told apart", () => {
    expect(goneWords(new MidstreamError("not_found", "x")).title).toBe("There is no such chat");
    const deleted = new MidstreamError("session_closed", "x", { reason: "deleted" });
    expect(goneWords(deleted)).toMatchObject({ title: "This chat was deleted", canReopen: false });
  });
});

describe("where input waits", () => {
  const prompt = {
    session_id: "s",
    message_id: "m",
    parts: [{ type: "text", text: "x" }],
    delivery: "auto",
  } as const;
  const none = () => undefined;

  it("while nothing runs a prompt stands where its message will be", () => {
    const waits = waitsOf([prompt], [], { isRunning: false, isLive: true }, none);
    expect([waits.above, waits.inList]).toEqual([[], [prompt]]);
  });

  it("while a turn runs it waits above the composer, and says whether the server has it", () => {
    const states = (isLive: boolean) =>
      waitsOf([prompt], ["q"], { isRunning: true, isLive }, none).above.map((one) => one.state);
    expect(states(true)).toEqual(["queued", "sending"]);
    expect(states(false)).toEqual(["queued", "offline"]);
  });
});

describe("attachments", () => {
  it("a data URL is as long as was computed", () => {
    const url = `data:text/plain;base64,${Buffer.from("four").toString("base64")}`;
    expect(dataUrlLength(4, "text/plain")).toBe(url.length);
  });

  it("a file that does not fit is refused with its size and what fits", () => {
    const room = roomLeft(1_048_576, 0, []);
    expect(refusal({ name: "small.png", size: 1000, type: "image/png" }, room)).toBeUndefined();
    const said = refusal({ name: "big.png", size: 3_000_000, type: "image/png" }, room);
    expect(said).toMatch(/^big\.png has 3\.0 MB, but only 783 kB fit/);
  });

  it("files share the room of one message", () => {
    const taken = { id: "1", name: "a", mediaType: "image/png", url: "x".repeat(1_044_000) };
    expect(refusal({ name: "b", size: 2000, type: "" }, roomLeft(1_048_576, 0, [taken]))).toContain(
      "is full",
    );
  });
});

describe("the address", () => {
  it("names a chat, or a new one, whatever is in it", () => {
    expect(parsePath("/")).toEqual({ kind: "new" });
    expect(parsePath("/s/a%2Fb")).toEqual({ kind: "chat", sessionId: "a/b" });
    expect(parsePath("/s/")).toEqual({ kind: "new" });
    expect(parsePath("/s/%E0%A4%A")).toEqual({ kind: "new" });
  });
});
