/** Which questions belong to which tool call: they are drawn together. */
import type { InteractionPart, Message, ToolPart } from "midstream-client";

const NONE: readonly InteractionPart[] = [];
const known = new WeakMap<Message, ReadonlyMap<string, readonly InteractionPart[]>>();

function relations(message: Message): ReadonlyMap<string, readonly InteractionPart[]> {
  let found = known.get(message);
  if (!found) {
    const calls = new Map<string, InteractionPart[]>();
    for (const part of message.parts) {
      if (part.type === "tool") {
        calls.set(part.tool_call_id, []);
      }
    }
    for (const part of message.parts) {
      if (part.type === "interaction" && part.tool_call_id !== undefined) {
        calls.get(part.tool_call_id)?.push(part);
      }
    }
    found = calls;
    known.set(message, found);
  }
  return found;
}

/** The questions about a tool call, in order. */
export const askedAbout = (message: Message, part: ToolPart): readonly InteractionPart[] =>
  relations(message).get(part.tool_call_id) ?? NONE;

/** Whether a question is drawn at its tool call, which is in the same message. */
export const isAtTool = (message: Message, part: InteractionPart): boolean =>
  part.tool_call_id !== undefined && relations(message).has(part.tool_call_id);
