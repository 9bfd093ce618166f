// @vitest-environment happy-dom
/** Every type of part, in its states. */
import { fireEvent, screen } from "@testing-library/react";
import type { Part, ToolPart } from "midstream-client";
import { expect, test, vi } from "vitest";
import { draw, later, messageOf, recorded, tool } from "./drawing.js";

const part = (given: object): Part => ({ part_id: "p", sequence: 1, ...given }) as Part;
const unfold = () => fireEvent.click(screen.getByRole("button", { expanded: false }));

test("a user's text is shown as it was typed, an agent's as Markdown", () => {
  const text = part({ type: "text", text: "a **b**\n  c" });
  expect(draw(messageOf([text], "user")).container.textContent).toBe("a **b**\n  c");
  expect(draw(messageOf([text])).container.querySelector("strong")?.textContent).toBe("b");
});

test("a text that grows has a caret at its end, and none when it is done", () => {
  const message = messageOf([part({ type: "text", text: "a\n\n- b", state: "streaming" })]);
  const { container, show } = draw(message);
  expect(container.querySelector("[data-caret]")?.parentElement?.tagName).toBe("LI");
  show(later(message, [part({ type: "text", text: "a\n\n- b", state: "done" })]));
  expect(container.querySelector("[data-caret]")).toBeNull();
});

test("reasoning is folded; it says how long it took where the page saw it", () => {
  vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
  const message = messageOf([part({ type: "reasoning", text: "I", state: "streaming" })]);
  const { container, show } = draw(message);
  expect(container.textContent).toBe("Thinking…");
  vi.advanceTimersByTime(4100);
  show(later(message, [part({ type: "reasoning", text: "I think.", state: "done" })]));
  expect(container.textContent).toBe("Thought for 4 s");
  vi.useRealTimers();
  unfold();
  expect(container.textContent).toContain("I think.");
  expect(draw(messageOf([part({ type: "reasoning", text: "x", state: "done" })])).container.textContent).toBe(
    "Thought",
  );
});

const STATES: readonly (readonly [string, Partial<ToolPart> & Pick<ToolPart, "state">])[] = [
  ["Preparing…", { state: "input-streaming", input_text: '{"a' }],
  ["Ready", { state: "ready", input: {} }],
  ["Waiting for an answer", { state: "waiting-user", input: {} }],
  ["Running…", { state: "running", input: {} }],
  ["Done", { state: "completed", input: {}, output: 1 }],
  ["Failed", { state: "failed", error: "no" }],
  ["Cut off", { state: "failed", error: "turn_stopped" }],
  ["Cut off", { state: "failed", error: "runtime_interrupted" }],
];

test.each(STATES)("a tool says its state in words: %s", (words, state) => {
  const { container } = draw(messageOf([tool({ title: "Delete", ...state })]));
  expect(container.textContent).toContain(words);
  expect(container.textContent).toContain("delete_note");
  expect(container.textContent).toContain("Delete");
});

test("the arguments of a tool are seen while they are written", () => {
  const message = messageOf([tool({ state: "input-streaming", input_text: '{"note": "Wat' })]);
  const { container, show } = draw(message);
  unfold();
  show(later(message, [tool({ state: "input-streaming", input_text: '{"note": "Water' })]));
  expect(container.querySelector("pre")?.textContent).toBe('{"note": "Water');
  show(later(message, [tool({ state: "ready", input: { note: "Water" } })]));
  expect(screen.getByText("Water", { selector: "dd" })).toBeTruthy();
});

test("a result that will be replaced is called so, and a provider's tool is called that", () => {
  const { container } = draw(
    messageOf([
      tool({ state: "running", input: {}, output: [4], preliminary: true, provider_executed: true }),
    ]),
  );
  unfold();
  expect(container.textContent).toContain("Result so far");
  expect(container.textContent).toContain("Run by the model's provider");
});

test("a large result is cut until all of it is asked for", () => {
  const output = Array.from({ length: 500 }, (_, at) => `line ${at}`).join("\n");
  const { container } = draw(messageOf([tool({ state: "completed", input: {}, output })]));
  unfold();
  expect(container.textContent).not.toContain("line 499");
  fireEvent.click(screen.getByRole("button", { name: /^Show all/ }));
  expect(container.textContent).toContain("line 499");
});

test("arguments that could not be read are shown as they came, with the error in words", () => {
  const { container } = draw(messageOf([tool({ state: "failed", raw_input: '{"a', error: "turn_stopped" })]));
  unfold();
  expect(container.textContent).toContain('{"a');
  expect(container.textContent).toContain("Stopped before it was done.");
});

test("neighbouring sources are one numbered list, whose links leave the page alone", () => {
  const source = (id: string, url: string, title?: string) =>
    part({ part_id: id, type: "source", source_type: "url", source_id: id, url, title });
  const { container } = draw(
    messageOf([
      source("a", "https://www.rfc-editor.org/x", "RFC"),
      source("b", "javascript:alert(1)", "Bad"),
    ]),
  );
  expect(container.querySelectorAll("ol")).toHaveLength(1);
  const links = [...container.querySelectorAll("a")];
  expect(links.map(({ href, rel, target }) => [href, rel, target])).toEqual([
    ["https://www.rfc-editor.org/x", "noopener noreferrer nofollow", "_blank"],
  ]);
  expect(container.textContent).toContain("rfc-editor.org");
  expect(container.textContent).toContain("Bad");
});

test("known data is drawn, other data is folded JSON, and known data of another form too", () => {
  const data = (data_type: string, value: unknown) => part({ type: "data", data_type, data: value });
  expect(draw(messageOf([data("demo.notes", ["Buy milk"])])).container.textContent).toContain("Buy milk");
  for (const strange of [data("demo.notes", { a: [1] }), data("toString", null), data("x", [1, [2]])]) {
    const { container } = draw(messageOf([strange]));
    expect(container.textContent).toContain("Data");
    fireEvent.click(container.querySelector("button") as HTMLElement);
    expect(container.querySelector("pre, dl")).toBeTruthy();
  }
});

test("an action says its state to those who do not see it", () => {
  const { container } = draw(
    messageOf([part({ type: "action", action_id: "a", action_type: "b", state: "failed", title: "Backup" })]),
  );
  expect(container.textContent).toBe("Backup, failed");
});

test("an error can be retried only where that may help", () => {
  const error = (recoverable: boolean) =>
    part({ type: "error", scope: "turn", code: "demo_error", message: "It broke.", recoverable });
  const onRetry = vi.fn();
  const message = messageOf([error(true)]);
  draw(message, recorded(), { onRetry });
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect(onRetry).toHaveBeenCalledWith(message);
  expect(
    draw(messageOf([error(false)]), recorded(), { onRetry }).container.querySelector("button"),
  ).toBeNull();
});

test("an error offers no retry any more when the answer goes on", () => {
  const error = part({ type: "error", scope: "turn", code: "c", message: "It broke.", recoverable: true });
  const message = messageOf([error]);
  const { container, show } = draw(message, recorded(), { onRetry: vi.fn() });
  expect(container.querySelector("button")).not.toBeNull();
  show(later(message, [error, part({ part_id: "more", type: "text", text: "I try again." })]));
  expect(container.querySelector("button")).toBeNull();
});

test("a context is folded under its tag", () => {
  const { container } = draw(
    messageOf([part({ type: "context", tag: "open-file", context: "x = 1" })], "user"),
  );
  expect(container.textContent).toBe("Context: open-file");
  unfold();
  expect(container.textContent).toContain("x = 1");
});

test("a part of a newer protocol, or of no form at all, is named and never breaks the page", () => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { container } = draw(
    messageOf([
      part({ part_id: "a", type: "hologram", depth: 3 }),
      part({ part_id: "b", type: "interaction", interaction_type: "question", status: "pending" }),
      part({ part_id: "c", type: "text", text: "after" }),
    ]),
  );
  expect(container.textContent).toContain("Not supported by this page: hologram");
  expect(container.textContent).toContain("Not supported by this page: interaction");
  expect(container.textContent).toContain("after");
  silent.mockRestore();
});
