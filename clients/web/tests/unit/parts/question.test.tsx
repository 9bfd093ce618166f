// @vitest-environment happy-dom
/** Questions: what can be sent is what the server takes (SPEC 8.6). */
import { cleanup, fireEvent, screen } from "@testing-library/react";
import type { InteractionPart, Question } from "midstream-client";
import { expect, test } from "vitest";
import { checked, inWords } from "../../../src/parts/answers.js";
import { approval, draw, messageOf, recorded } from "./drawing.js";

const SIZE: Question = {
  question_id: "size",
  question: "How hungry?",
  options: [{ value: "small", label: "A little", description: "26 cm" }, { value: "large" }],
};
const TOPPINGS: Question = {
  question_id: "toppings",
  question: "On top?",
  options: [
    { value: "olives", label: "Olives" },
    { value: "basil", label: "Basil" },
  ],
  multiple: true,
};
const WISH: Question = { question_id: "wish", question: "A wish?" };
const GUESTS: Question = { question_id: "guests", question: "Who comes?", multiple: true };
const ALL = [SIZE, TOPPINGS, WISH, GUESTS];

const asked = (id: string, rest: Partial<InteractionPart> = {}): InteractionPart =>
  approval({
    interaction_id: id,
    interaction_type: "question",
    request: { title: "Your pizza", questions: ALL },
    ...rest,
  });

test("a question may have any id, such as those that every object seems to have", () => {
  const ids = ["__proto__", "constructor", "toString"];
  const questions = ids.map((question_id) => ({ ...WISH, question_id }));
  const given = Object.fromEntries(ids.map((id) => [id, `for ${id}`]));
  expect(Object.entries(checked(questions, given).answers ?? {})).toEqual(Object.entries(given));
  expect(Object.entries(checked(questions, {}).answers ?? {})).toEqual(ids.map((id) => [id, ""]));
  draw(messageOf([asked("odd", { request: { title: "Odd", questions } })]));
  expect(screen.getAllByRole("textbox").map((field) => (field as HTMLTextAreaElement).value)).toEqual([
    "",
    "",
    "",
  ]);
  cleanup();
});

test("one value for each question, and of options only theirs", () => {
  expect(checked(ALL, { size: "large", guests: [" ann ", "", "bob"] }).answers).toEqual({
    size: "large",
    toppings: [],
    wish: "",
    guests: ["ann", "bob"],
  });
  expect(checked(ALL, {}).problems).toEqual({ size: "Choose one." });
  expect(checked(ALL, { size: "huge", toppings: ["glass"] }).problems).toEqual({
    size: "Choose from the list.",
    toppings: "Choose from the list.",
  });
  const nothing = { ...SIZE, options: [{ value: "", label: "None" }, { value: "x" }] };
  expect(checked([nothing], {}).answers).toEqual({ size: "" });
});

test("an answer is read by its labels", () => {
  expect(inWords(TOPPINGS, { question_id: "toppings", value: ["olives", "basil"] })).toBe("Olives, Basil");
  expect(inWords(SIZE, { question_id: "size", value: "large" })).toBe("large");
  expect(inWords(SIZE, undefined)).toBe("");
});

test("what was chosen and written is sent under the questions' ids", () => {
  const session = recorded();
  draw(messageOf([asked("sent")]), session);
  fireEvent.click(screen.getByRole("radio", { name: /A little/ }));
  fireEvent.click(screen.getByRole("checkbox", { name: "Basil" }));
  fireEvent.click(screen.getByRole("checkbox", { name: "Olives" }));
  fireEvent.change(screen.getByLabelText("A wish?"), { target: { value: "no onions" } });
  fireEvent.change(screen.getByLabelText("Who comes?"), { target: { value: "ann\nbob" } });
  fireEvent.submit(screen.getByRole("button", { name: "Send answers" }));
  const answers = { size: "small", toppings: ["olives", "basil"], wish: "no onions", guests: ["ann", "bob"] };
  expect(session.requests.map(({ call }) => call)).toEqual([["answer", "sent", answers]]);
});

test("where a choice is missing nothing is sent, and the keyboard is led there", () => {
  const session = recorded();
  draw(messageOf([asked("missing")]), session);
  fireEvent.submit(screen.getByRole("button", { name: "Send answers" }));
  expect(session.requests).toEqual([]);
  expect(screen.getByText("Choose one.")).toBeTruthy();
  const first = screen.getByRole("radio", { name: /A little/ });
  expect(document.activeElement).toBe(first);
  expect(first.getAttribute("aria-invalid")).toBe("true");
  fireEvent.click(first);
  expect(screen.queryByText("Choose one.")).toBeNull();
});

test("each question is a group with its own name, and Ctrl+Enter sends from a text", () => {
  const session = recorded();
  draw(messageOf([asked("keys")]), session);
  expect(screen.getByRole("group", { name: "On top?" })).toBeTruthy();
  fireEvent.click(screen.getByRole("radio", { name: "large" }));
  fireEvent.keyDown(screen.getByLabelText("A wish?"), { key: "Enter" });
  expect(session.requests).toHaveLength(0);
  fireEvent.keyDown(screen.getByLabelText("A wish?"), { key: "Enter", ctrlKey: true });
  expect(session.requests).toHaveLength(1);
});

test("what was entered is still there when the card was out of view", () => {
  const message = messageOf([asked("kept")]);
  draw(message);
  fireEvent.change(screen.getByLabelText("A wish?"), { target: { value: "half" } });
  cleanup();
  draw(message);
  expect((screen.getByLabelText("A wish?") as HTMLTextAreaElement).value).toBe("half");
});

test("afterwards the answers are read with who gave them", () => {
  const { container } = draw(
    messageOf([
      asked("done", {
        status: "resolved",
        resolved_by: "ann",
        resolved_at: 1,
        response: {
          kind: "question",
          answers: [
            { question_id: "size", value: "small" },
            { question_id: "toppings", value: [] },
          ],
        },
      }),
    ]),
  );
  expect(container.textContent).toContain("How hungry?A little");
  expect(container.textContent).toContain("On top?nothing");
  expect(container.textContent).toContain("Answered by ann");
  expect(screen.queryByRole("button")).toBeNull();
});
