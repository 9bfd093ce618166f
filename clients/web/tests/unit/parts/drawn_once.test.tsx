// @vitest-environment happy-dom
/** While one part streams, no other is drawn again. */
import type { Part } from "midstream-client";
import { expect, test } from "vitest";
import { approval, draw, later, messageOf, tool } from "./drawing.js";

/** A part that counts how often a field of it is read: that is, how often it is drawn. */
function counted<P extends object>(
  part: P,
  field: keyof P,
): { readonly part: P; readonly count: () => number } {
  let count = 0;
  const value = part[field];
  const counting = { ...part };
  Object.defineProperty(counting, field, {
    enumerable: true,
    get: () => {
      count += 1;
      return value;
    },
  });
  return { part: counting, count: () => count };
}

test("a part is drawn again only when it is another one", () => {
  const base = { sequence: 1 };
  const others = [
    counted({ ...base, part_id: "1", type: "text", text: "done", state: "done" } as const, "text"),
    counted({ ...base, part_id: "2", type: "reasoning", text: "done", state: "done" } as const, "text"),
    counted({ ...tool({ state: "completed", input: {}, output: 1 }), part_id: "3" }, "tool_name"),
    counted({ ...approval({ part_id: "4" }) }, "request"),
    counted(
      {
        ...base,
        part_id: "5",
        type: "action",
        action_id: "a",
        action_type: "a",
        state: "running",
        title: "A",
      } as const,
      "title",
    ),
    counted(
      {
        ...base,
        part_id: "6",
        type: "error",
        scope: "turn",
        code: "c",
        message: "m",
        recoverable: true,
      } as const,
      "message",
    ),
    counted({ ...base, part_id: "7", type: "data", data_type: "x", data: 1 } as const, "data_type"),
    counted(
      {
        ...base,
        part_id: "8",
        type: "source",
        source_type: "url",
        source_id: "s",
        url: "https://a.example/",
      } as const,
      "url",
    ),
    counted(
      { ...base, part_id: "9", type: "file", url: "https://a.example/f", media_type: "text/plain" } as const,
      "url",
    ),
    counted({ ...base, part_id: "10", type: "context", tag: "t", context: "c" } as const, "tag"),
    counted({ ...base, part_id: "11", type: "hologram" } as never as Part, "type"),
  ];
  const growing = (text: string): Part => ({
    ...base,
    part_id: "12",
    type: "text",
    text,
    state: "streaming",
  });
  const all = (text: string): Part[] => [...others.map(({ part }) => part as Part), growing(text)];
  const message = messageOf(all("a"));
  const { container, show } = draw(message);
  // the grouping and the choice of a drawing read `type`, for every state of the message
  const drawn = others.slice(0, -1).map(({ count }) => count());
  for (let step = 1; step <= 50; step += 1) {
    show(later(message, all("a".repeat(step))));
  }
  expect(container.textContent).toContain("a".repeat(50));
  expect(drawn.every((count) => count > 0)).toBe(true);
  expect(others.slice(0, -1).map(({ count }) => count())).toEqual(drawn);
});

test("a tool is drawn again when the question about it changes", () => {
  const call = tool({ state: "waiting-user", input: {} });
  const message = messageOf([call, approval({ tool_call_id: "call" })]);
  const { container, show } = draw(message);
  show(later(message, [call, approval({ tool_call_id: "call", status: "expired", resolved_at: 1 })]));
  expect(container.textContent).toContain("Expired without an answer");
});

test("of a text only the block that grows is drawn again: the elements of the others stay", () => {
  const text = (source: string): Part => ({
    part_id: "t",
    sequence: 1,
    type: "text",
    text: source,
    state: "streaming",
  });
  const message = messageOf([text("# One\n\n- two\n\n```py\nthree\n```\n\nfo")]);
  const { container, show } = draw(message);
  const root = container.querySelector("h3")?.parentElement;
  const before = [...(root?.children ?? [])];
  const typed = before.at(-1)?.firstChild;
  show(later(message, [text("# One\n\n- two\n\n```py\nthree\n```\n\nfour")]));
  expect([...(root?.children ?? [])]).toEqual(before);
  expect(before.at(-1)?.firstChild).toBe(typed); // a selection in it stays
  expect(before.at(-1)?.textContent).toBe("four");
});
