/** Parts in a page, and a session that remembers what was asked of it. */
import { cleanup, render } from "@testing-library/react";
import type { InteractionPart, Message, Part, ToolPart } from "midstream-client";
import { afterEach } from "vitest";
import { MessageParts } from "../../../src/parts/message_parts.js";
import { type PartSession, PartSurroundings, type Surroundings } from "../../../src/parts/surroundings.js";

afterEach(cleanup);

let messages = 0;

/** A message of the agent with these parts. Each has another id, so that nothing is remembered from before. */
export function messageOf(parts: readonly Part[], role: "agent" | "user" = "agent"): Message {
  messages += 1;
  return {
    message_id: `message ${messages}`,
    session_id: "session",
    sequence: 1,
    revision: 1,
    role,
    visibility: "visible",
    created_at: 0,
    updated_at: 0,
    ...(role === "agent" ? { state: "streaming" } : {}),
    parts,
  };
}

/** Another state of the same message: its parts from `changed` on are these. */
export const later = (message: Message, parts: readonly Part[]): Message => ({
  ...message,
  revision: message.revision + 1,
  parts,
});

/** A request that waits to be decided. */
export interface Request {
  readonly call: readonly unknown[];
  resolve(): void;
  reject(error: unknown): void;
}

/** A session for answers: each waits until the test decides it. */
export function recorded(): PartSession & { readonly requests: Request[] } {
  const requests: Request[] = [];
  const ask = (...call: readonly unknown[]) =>
    new Promise<InteractionPart>((resolve, reject) => {
      requests.push({ call, resolve: () => resolve({} as InteractionPart), reject });
    });
  return {
    requests,
    approve: (...given) => ask("approve", ...given),
    deny: (...given) => ask("deny", ...given),
    answer: (...given) => ask("answer", ...given),
  };
}

/** Draw a message; `show` draws it again in another state. */
export function draw(message: Message, session: PartSession = recorded(), surroundings: Surroundings = {}) {
  const page = (shown: Message) => (
    <PartSurroundings value={surroundings}>
      <MessageParts message={shown} session={session} />
    </PartSurroundings>
  );
  const { container, rerender } = render(page(message));
  return { container, show: (next: Message) => rerender(page(next)) };
}

export const tool = (rest: Partial<ToolPart> & Pick<ToolPart, "state">): ToolPart => ({
  type: "tool",
  part_id: "tool",
  sequence: 1,
  tool_call_id: "call",
  tool_name: "delete_note",
  ...rest,
});

export const approval = (rest: Partial<InteractionPart> = {}): InteractionPart => ({
  type: "interaction",
  part_id: "approval",
  sequence: 2,
  interaction_id: "ask",
  interaction_type: "approval",
  status: "pending",
  request: { title: "Delete the note?", description: "It cannot be brought back." },
  ...rest,
});

export const resolved = (
  decision: "approved" | "denied",
  rest: Partial<InteractionPart> = {},
): InteractionPart =>
  approval({
    status: "resolved",
    response: { kind: "approval", decision },
    resolved_by: "ann",
    resolved_at: Date.now(),
    ...rest,
  });
