// @vitest-environment happy-dom
/** Approvals: anybody may answer, once; everybody sees who did. */
import { act, cleanup, fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { approval, draw, later, messageOf, recorded, resolved, tool } from "./drawing.js";

const button = (name: string | RegExp) => screen.getByRole("button", { name });

test("the two buttons answer, and a second press while one is on its way does nothing", () => {
  const session = recorded();
  draw(messageOf([approval()]), session);
  const [approve, deny] = [button("Approve"), button("Deny")];
  act(() => {
    approve.click();
    deny.click();
  });
  act(() => deny.click());
  expect(session.requests.map(({ call }) => call)).toEqual([["approve", "ask", undefined]]);
  expect(button("Approving…").getAttribute("aria-disabled")).toBe("true");
});

test("a reason goes with a denial, and is not lost when the card is drawn anew", () => {
  const session = recorded();
  const message = messageOf([approval({ interaction_id: "with reason" })]);
  draw(message, session);
  fireEvent.click(button("Add a reason"));
  fireEvent.change(screen.getByLabelText("Reason, for the agent"), { target: { value: " not today " } });
  cleanup();
  draw(message, session);
  expect((screen.getByLabelText("Reason, for the agent") as HTMLInputElement).value).toBe(" not today ");
  fireEvent.click(button("Deny"));
  expect(session.requests[0]?.call).toEqual(["deny", "with reason", "not today"]);
});

test("whoever is late is told who was first, and may see the buttons no more when the session says so", async () => {
  const session = recorded();
  const message = messageOf([approval()]);
  const { show } = draw(message, session, { subject: "me" });
  fireEvent.click(button("Approve"));
  const details = { status: "resolved", resolved_by: "ann" };
  await act(async () =>
    session.requests[0]?.reject({ code: "interaction_closed", message: "closed", details }),
  );
  expect(screen.getByRole("alert").textContent).toBe("ann was first.");
  show(later(message, [resolved("denied")]));
  expect(screen.queryByRole("button")).toBeNull();
  expect(screen.getByText(/^Denied by ann/)).toBeTruthy();
});

test("another failure says what it was, and can be tried again", async () => {
  const session = recorded();
  draw(messageOf([approval()]), session);
  fireEvent.click(button("Approve"));
  await act(async () => session.requests[0]?.reject(new Error("The connection was lost.")));
  expect(screen.getByRole("alert").textContent).toBe("The connection was lost.");
  fireEvent.click(button("Approve"));
  expect(session.requests).toHaveLength(2);
});

test.each([
  ["Approved by ann", resolved("approved"), "me"],
  ["Approved by you", resolved("approved"), "ann"],
  [
    "Denied by ann “no”",
    resolved("denied", { response: { kind: "approval", decision: "denied", reason: "no" } }),
    "",
  ],
  [
    "Approved automatically: ann allowed everything",
    resolved("approved", { approval_mode: "always-allow" }),
    "me",
  ],
  ["Expired without an answer", approval({ status: "expired", resolved_at: 1 }), "me"],
  [
    "Cancelled: the agent's work ended",
    approval({ status: "cancelled", cancel_reason: "turn_stopped" }),
    "me",
  ],
  [
    "Cancelled: the chat was deleted",
    approval({ status: "cancelled", cancel_reason: "session_disposed" }),
    "me",
  ],
  [
    "Cancelled: the server was restarted",
    approval({ status: "cancelled", cancel_reason: "runtime_interrupted" }),
    "me",
  ],
  ["Cancelled", approval({ status: "cancelled", cancel_reason: "of a newer server" as never }), "me"],
])("what became of it is said in words: %s", (words, part, subject) => {
  const { container } = draw(messageOf([part]), recorded(), { subject });
  expect(container.textContent).toContain(words);
  expect(screen.queryByRole("button")).toBeNull();
});

test("a question about a tool is drawn at its card, with the arguments, and not a second time", () => {
  const waiting = tool({ state: "waiting-user", input: { note: "Water the plants" } });
  const { container } = draw(messageOf([waiting, approval({ tool_call_id: "call" })]));
  expect(screen.getAllByRole("button", { name: "Approve" })).toHaveLength(1);
  expect(container.textContent).toContain("Waiting for an answer");
  expect(screen.getByText("Water the plants", { selector: "dd" })).toBeTruthy();
});

test("a question whose tool is elsewhere stands for itself", () => {
  draw(messageOf([approval({ tool_call_id: "another" })]));
  expect(button("Approve")).toBeTruthy();
});

test("a tool that a person forbade is denied, not failed", () => {
  const { container } = draw(
    messageOf([tool({ state: "failed", error: "denied" }), resolved("denied", { tool_call_id: "call" })]),
  );
  expect(container.textContent).toContain("Denied");
  expect(container.textContent).not.toContain("Failed");
});

test("the keyboard's place stays at the card when its buttons go", () => {
  const message = messageOf([approval()]);
  const { container, show } = draw(message);
  button("Approve").focus();
  show(later(message, [resolved("approved")]));
  expect(document.activeElement).not.toBe(document.body);
  expect(container.contains(document.activeElement)).toBe(true);
});

test("the time that is left is that of the server's clock", () => {
  const { container } = draw(
    messageOf([approval({ request: { title: "?", expires_at: 1_000_000_090_000 } })]),
    recorded(),
    { now: () => 1_000_000_000_000 },
  );
  expect(container.textContent).toContain("Expires in 1 min 30 s");
});
