/** Every kind of part, from its first state to its last: what adapters must be able to show, and to follow. */
import type { InteractionPart, Message, Part, ToolPart } from "../../src/index.js";

/** The parts of a message, one moment after the other. */
type Life = readonly (readonly Part[])[];

const at = (sequence: number) => ({ part_id: `p${sequence}`, sequence, step_id: "st" });
const text = (text: string, state: "streaming" | "done", sequence = 1): Part => ({
  ...at(sequence),
  type: "text",
  text,
  state,
});
const tool = (more: Partial<ToolPart>): ToolPart => ({
  ...at(1),
  type: "tool",
  tool_call_id: "call",
  tool_name: "delete_note",
  state: "ready",
  title: "Delete a note",
  ...more,
});
const INPUT = { note: "milk" };
const asked = (more: Partial<InteractionPart>): InteractionPart => ({
  ...at(2),
  type: "interaction",
  interaction_id: "int",
  interaction_type: "approval",
  status: "pending",
  request: { title: "Delete it?", description: "It cannot be brought back." },
  tool_call_id: "call",
  ...more,
});
const answered = (decision: "approved" | "denied"): InteractionPart =>
  asked({
    status: "resolved",
    response: { kind: "approval", decision, reason: "because" },
    resolved_by: "ann",
    resolved_at: 5,
  });
const question = (more: Partial<InteractionPart>): InteractionPart => {
  const { tool_call_id: _, ...rest } = asked({
    interaction_type: "question",
    sequence: 1,
    part_id: "p1",
    ...more,
  });
  return { ...rest, request: { title: "Which?", questions: [{ question_id: "q", question: "Which?" }] } };
};

/** By the type that is shown; a test asks of each life what it asks of all. */
export const LIVES: { readonly [T in Part["type"]]: readonly Life[] } = {
  text: [
    [
      [text("", "streaming")],
      [text("Hel", "streaming")],
      [text("Hello", "streaming")],
      [text("Hello!", "done")],
    ],
    [
      [text("one", "done")],
      [text("one", "done"), text("tw", "streaming", 2)],
      [text("one", "done"), text("two", "done", 2)],
    ],
    // a step is abandoned: its text becomes shorter, and other
    [
      [text("kept", "done"), text("wrong", "streaming", 2)],
      [text("kept", "done")],
      [text("kept", "done"), text("right", "done", 2)],
    ],
  ],
  reasoning: [
    [
      [{ ...at(1), type: "reasoning", text: "Hm", state: "streaming" }],
      [
        {
          ...at(1),
          type: "reasoning",
          text: "Hmm.",
          state: "done",
          provider_metadata: { some: { signature: "s" } },
        },
      ],
    ],
  ],
  tool: [
    [
      [tool({ state: "input-streaming", input_text: "" })],
      [tool({ state: "input-streaming", input_text: '{"note": ' })],
      [tool({ state: "input-streaming", input_text: '{"note": "milk"}' })],
      [tool({ state: "ready", input_text: '{"note": "milk"}', input: INPUT })],
      [tool({ state: "running", input: INPUT })],
      [tool({ state: "running", input: INPUT, output: { done: 50 }, preliminary: true })],
      [tool({ state: "running", input: INPUT, output: { done: 70 }, preliminary: true })],
      [tool({ state: "completed", input: INPUT, output: { done: 100 } })],
    ],
    [
      [tool({ input: INPUT, dynamic: true, tool_metadata: { kind: "mcp" } })],
      [
        tool({
          state: "failed",
          input: INPUT,
          dynamic: true,
          tool_metadata: { kind: "mcp" },
          error: "no disk",
        }),
      ],
    ],
    [
      [tool({ state: "input-streaming", input_text: "{no" })],
      [tool({ state: "failed", raw_input: "{no", error: "not JSON" })],
    ],
    [
      [tool({ state: "input-streaming", input_text: "{" })],
      [tool({ state: "failed", error: "turn_stopped" })],
    ],
    [
      [
        tool({
          state: "completed",
          input: INPUT,
          output: null,
          provider_executed: true,
          call_provider_metadata: { some: { a: 1 } },
        }),
      ],
    ],
    [
      [tool({ input: INPUT })],
      [tool({ state: "waiting-user", input: INPUT }), asked({})],
      [tool({ state: "ready", input: INPUT }), answered("approved")],
      [tool({ state: "running", input: INPUT }), answered("approved")],
      [tool({ state: "completed", input: INPUT, output: "gone" }), answered("approved")],
    ],
    [
      [tool({ state: "waiting-user", input: INPUT }), asked({})],
      [tool({ state: "ready", input: INPUT }), answered("denied")],
      [tool({ state: "failed", input: INPUT, error: "denied" }), answered("denied")],
    ],
    [
      [tool({ state: "waiting-user", input: INPUT }), asked({})],
      [tool({ state: "failed", input: INPUT, error: "late" }), asked({ status: "expired", resolved_at: 9 })],
    ],
    [[tool({ input: INPUT }), { ...answered("approved"), approval_mode: "always-allow" }]],
  ],
  interaction: [
    [
      [question({})],
      [
        question({
          status: "resolved",
          response: { kind: "question", answers: [{ question_id: "q", value: "this" }] },
          resolved_by: "ann",
          resolved_at: 5,
        }),
      ],
    ],
    [
      [asked({ sequence: 1, part_id: "p1", tool_call_id: "elsewhere" })],
      [
        asked({
          sequence: 1,
          part_id: "p1",
          tool_call_id: "elsewhere",
          status: "cancelled",
          cancel_reason: "turn_stopped",
          resolved_at: 5,
        }),
      ],
    ],
  ],
  action: [
    [
      [
        {
          ...at(1),
          type: "action",
          action_id: "act",
          action_type: "backup",
          state: "running",
          title: "Making a backup",
          data: { done: 0 },
        },
      ],
      [
        {
          ...at(1),
          type: "action",
          action_id: "act",
          action_type: "backup",
          state: "completed",
          title: "Made a backup",
        },
      ],
    ],
  ],
  data: [
    [
      [{ ...at(1), type: "data", data_type: "weather", data: { celsius: 20 }, data_id: "w" }],
      [{ ...at(1), type: "data", data_type: "weather", data: { celsius: 21 }, data_id: "w" }],
      // data of the same id again replaces the one before, where that stands
      [
        { ...at(1), type: "data", data_type: "weather", data: { celsius: 21 }, data_id: "w" },
        text("then", "done", 2),
        { ...at(3), type: "data", data_type: "weather", data: { celsius: 22 }, data_id: "w" },
      ],
    ],
    [
      [
        { ...at(1), type: "data", data_type: "note", data: null },
        { ...at(2), type: "data", data_type: "note", data: 2 },
      ],
    ],
  ],
  source: [
    [
      [
        {
          ...at(1),
          type: "source",
          source_type: "url",
          source_id: "s1",
          url: "https://example.org/",
          title: "Example",
        },
      ],
    ],
    [
      [
        {
          ...at(1),
          type: "source",
          source_type: "document",
          source_id: "s2",
          title: "Doc",
          media_type: "application/pdf",
          filename: "doc.pdf",
        },
      ],
    ],
  ],
  file: [[[{ ...at(1), type: "file", url: "data:text/plain,hi", media_type: "text/plain" }]]],
  context: [[[{ ...at(1), type: "context", tag: "page", context: "The user looks at page 3." }]]],
  error: [
    [[{ ...at(1), type: "error", scope: "turn", code: "demo", message: "It failed.", recoverable: true }]],
  ],
  "step-start": [
    [
      [{ ...at(1), type: "step-start" }],
      [{ ...at(1), type: "step-start" }, text("a", "streaming", 2)],
      [{ ...at(1), type: "step-start" }],
      [{ ...at(1), type: "step-start" }, text("b", "done", 2), { ...at(3), type: "step-start" }],
    ],
  ],
};

/** A message of the agent's with these parts. */
export const messageWith = (parts: readonly Part[], more: Partial<Message> = {}): Message => ({
  message_id: "m2",
  session_id: "s",
  turn_id: "t",
  sequence: 2,
  revision: 7,
  role: "agent",
  visibility: "visible",
  created_at: 100,
  updated_at: 200,
  state: "streaming",
  parts,
  ...more,
});

/** Each life by name, with each of its moments as a message. */
export const ALL_LIVES = Object.entries(LIVES).flatMap(([type, lives]) =>
  lives.map((life, index) => ({
    name: `${type} ${index + 1}`,
    moments: life.map((parts) => messageWith(parts)),
  })),
);
