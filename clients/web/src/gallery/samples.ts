/** Every part in every state. */
import type { InteractionPart, Message, Part, ToolPart } from "midstream-client";
import { ANSWER, RIGHT_TO_LEFT } from "./answer.js";
import { CSV, picture } from "./pictures.js";

let count = 0;
/** The next number of all. */
function next(): number {
  count += 1;
  return count;
}
const NOON = new Date().setHours(12, 3, 0, 0);

/** Give parts their ids and numbers. */
type Unnumbered = Part extends infer P ? (P extends Part ? Omit<P, "part_id" | "sequence"> : never) : never;

function message(role: "user" | "agent", parts: readonly Unnumbered[], state?: "streaming"): Message {
  const sequence = next();
  return {
    message_id: `m${sequence}`,
    session_id: "gallery",
    sequence,
    revision: 1,
    role,
    visibility: "visible",
    created_at: NOON,
    updated_at: NOON,
    ...(role === "agent" ? { state: state ?? "done" } : {}),
    parts: parts.map((part, index) => ({ ...part, part_id: `p${index + 1}`, sequence: index + 1 }) as Part),
  };
}

const tool = (rest: Partial<ToolPart> & Pick<ToolPart, "state">): Unnumbered => ({
  type: "tool",
  tool_call_id: `call${next()}`,
  tool_name: "search_notes",
  ...rest,
});

const DELETE = { title: "Delete the note “Water the plants”?", description: "It cannot be brought back." };

const approval = (rest: Partial<InteractionPart>): Unnumbered => ({
  type: "interaction",
  interaction_id: `ask${next()}`,
  interaction_type: "approval",
  status: "pending",
  request: DELETE,
  ...rest,
});

const approved = { kind: "approval", decision: "approved" } as const;
const denied = { kind: "approval", decision: "denied" } as const;

const ORDER: InteractionPart["request"] = {
  title: "Your pizza",
  description: "It will not really come.",
  expires_at: Date.now() + 272_000,
  questions: [
    {
      question_id: "size",
      question: "How hungry are you?",
      options: [
        { value: "small", label: "A little", description: "26 cm" },
        { value: "large", label: "Very", description: "36 cm" },
      ],
    },
    {
      question_id: "toppings",
      question: "What goes on top?",
      multiple: true,
      options: ["mushrooms", "olives", "peppers", "basil"].map((value) => ({ value })),
    },
    { question_id: "wish", question: "Anything that the kitchen should know?" },
  ],
};

const deletion = (state: ToolPart["state"], id: string, rest: Partial<ToolPart> = {}): Unnumbered =>
  tool({
    state,
    tool_call_id: id,
    tool_name: "delete_note",
    title: "Delete a note",
    input: { note: "Water the plants" },
    ...rest,
  });

const question = (rest: Partial<InteractionPart>): Unnumbered =>
  approval({ interaction_type: "question", request: ORDER, ...rest });

/** What is shown, under a heading each. */
export function samples(): readonly (readonly [string, readonly Message[]])[] {
  return [
    ["Markdown", [message("agent", [{ type: "text", state: "done", text: ANSWER }])]],
    [
      "Text",
      [
        message("user", [{ type: "text", text: "Plain text of a user,\nwith **no** Markdown in it." }]),
        message(
          "agent",
          [{ type: "text", state: "streaming", text: "A sentence that is **not yet" }],
          "streaming",
        ),
        message(
          "agent",
          [{ type: "text", state: "streaming", text: "```python\ndef f(x):\n    return x" }],
          "streaming",
        ),
        message("agent", [{ type: "text", state: "done", text: RIGHT_TO_LEFT }]),
      ],
    ],
    [
      "Reasoning",
      [
        message("agent", [{ type: "reasoning", state: "streaming", text: "I find " }], "streaming"),
        message("agent", [
          { type: "reasoning", state: "done", text: "I find *tool* in this. First I count, then I say it." },
        ]),
      ],
    ],
    [
      "Tools",
      [
        message("agent", [
          tool({ state: "input-streaming", input_text: '{"query": "harbour li', title: "Search the notes" }),
          tool({ state: "ready", input: { query: "harbour lights", limit: 5 } }),
          tool({ state: "running", input: { query: "harbour lights", limit: 5 } }),
          tool({
            state: "running",
            tool_name: "roll_dice",
            title: "Roll two dice",
            input: { dice: 2 },
            output: { thrown: [4] },
            preliminary: true,
          }),
          tool({
            state: "completed",
            tool_name: "count_words",
            title: "Count the words",
            input: { text: "Count the words of this, please" },
            output: { words: 6, longest: "please" },
          }),
          tool({
            state: "completed",
            tool_name: "web_search",
            input: { query: "RFC 6455" },
            provider_executed: true,
            output: Array.from({ length: 60 }, (_, at) => ({
              rank: at + 1,
              url: `https://example.com/${at}`,
              ok: true,
            })),
          }),
          tool({
            state: "failed",
            input: { query: "?" },
            error: "The query has no words. Give at least one.",
          }),
          tool({ state: "failed", input: { query: "x" }, error: "turn_stopped" }),
          tool({ state: "failed", raw_input: '{"query": "harb', error: "The arguments are no JSON." }),
        ]),
      ],
    ],
    [
      "Approvals",
      [
        message("agent", [
          deletion("waiting-user", "a1"),
          approval({ tool_call_id: "a1", request: { ...DELETE, expires_at: Date.now() + 95_000 } }),
        ]),
        message("agent", [
          deletion("completed", "a2", { output: { deleted: "Water the plants" } }),
          approval({
            tool_call_id: "a2",
            status: "resolved",
            response: approved,
            resolved_by: "ann",
            resolved_at: NOON,
          }),
        ]),
        message("agent", [
          deletion("failed", "a3", { error: "denied: not today" }),
          approval({
            tool_call_id: "a3",
            status: "resolved",
            response: { ...denied, reason: "not today" },
            resolved_by: "me",
            resolved_at: NOON - 86_400_000,
          }),
        ]),
        message("agent", [
          deletion("completed", "a4", { output: { deleted: "Water the plants" } }),
          approval({
            tool_call_id: "a4",
            status: "resolved",
            response: approved,
            resolved_by: "ann",
            resolved_at: NOON,
            approval_mode: "always-allow",
          }),
        ]),
        message("agent", [approval({ request: { title: "Send the letter to 214 people?" } })]),
        message("agent", [approval({ status: "expired", resolved_at: NOON })]),
        message("agent", [
          approval({ status: "cancelled", cancel_reason: "turn_stopped", resolved_at: NOON }),
        ]),
      ],
    ],
    [
      "Questions",
      [
        message("agent", [question({})]),
        message("agent", [
          question({
            status: "resolved",
            resolved_by: "ann",
            resolved_at: NOON,
            response: {
              kind: "question",
              answers: [
                { question_id: "size", value: "large" },
                { question_id: "toppings", value: ["olives", "basil"] },
                { question_id: "wish", value: "" },
              ],
            },
          }),
        ]),
        message("agent", [
          question({ status: "cancelled", cancel_reason: "runtime_interrupted", resolved_at: NOON }),
        ]),
      ],
    ],
    [
      "Sources, files, data",
      [
        message("agent", [
          {
            type: "source",
            source_type: "url",
            source_id: "s1",
            url: "https://www.rfc-editor.org/rfc/rfc6455",
            title: "RFC 6455: The WebSocket Protocol, with a title that is a good deal longer than its line",
          },
          { type: "source", source_type: "url", source_id: "s2", url: "https://example.com/a/b" },
          {
            type: "source",
            source_type: "document",
            source_id: "s3",
            title: "The harbour's log",
            media_type: "application/pdf",
            filename: "log.pdf",
          },
        ]),
        message("user", [
          { type: "text", text: "Look at these." },
          { type: "file", url: picture(900, 600, 170), media_type: "image/png", filename: "bars.png" },
          { type: "file", url: picture(300, 500, 30), media_type: "image/png", filename: "tall.png" },
          { type: "file", url: CSV, media_type: "text/csv", filename: "modes.csv" },
        ]),
        message("agent", [
          {
            type: "file",
            url: "https://example.com/report.pdf",
            media_type: "application/pdf",
            filename: "report.pdf",
          },
          { type: "file", url: "javascript:alert(1)", media_type: "text/html", filename: "evil.html" },
        ]),
        message("agent", [
          { type: "data", data_type: "demo.notes", data: ["Water the plants", "Buy milk"] },
          { type: "data", data_type: "demo.weather", data: { place: "here", sky: "clear", celsius: 21 } },
        ]),
      ],
    ],
    [
      "Actions, errors, the rest",
      [
        message("agent", [
          {
            type: "action",
            action_id: "x1",
            action_type: "backup",
            state: "running",
            title: "Making a backup",
            description: "50 %",
          },
          {
            type: "action",
            action_id: "x2",
            action_type: "backup",
            state: "completed",
            title: "Made a backup",
            data: { done: 100 },
          },
          {
            type: "action",
            action_id: "x3",
            action_type: "backup",
            state: "failed",
            title: "Making a backup",
          },
        ]),
        message("agent", [
          {
            type: "error",
            scope: "turn",
            code: "demo_error",
            message: "This error is part of the demonstration.",
            recoverable: true,
          },
          {
            type: "error",
            scope: "session",
            code: "agent_failed",
            message: "The agent's program raised ValueError.",
            recoverable: false,
          },
        ]),
        message("user", [
          { type: "text", text: "With a context." },
          { type: "context", tag: "open-file", context: "def f(x):\n    return x" },
        ]),
        message("agent", [
          { type: "text", state: "done", text: "Before a step," },
          { type: "step-start" },
          { type: "text", state: "done", text: "and after it." },
          { type: "hologram", depth: 3 } as never,
        ]),
      ],
    ],
  ];
}
