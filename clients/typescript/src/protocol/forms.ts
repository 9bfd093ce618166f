/**
 * The fields of a message that SPEC 2 knows, and no others: digests are taken of these (SPEC 5.6), so that a
 * newer server's do no harm. A test compares them with the JSON Schema of the protocol.
 *
 * A table lists the fields by name; `name:Table` is one that is a map itself, or a list of maps.
 */
import type { Message, Value } from "./model.js";

const PART = "type part_id sequence step_id ";

export const FORMS: { readonly [name: string]: string } = {
  Message:
    "message_id session_id turn_id sequence revision role visibility created_at updated_at origin:Origin state parts:Part",
  Origin: "session_id message_id turn_id",
  text: `${PART}text state provider_metadata`,
  reasoning: `${PART}text state provider_metadata`,
  context: `${PART}tag context`,
  file: `${PART}url media_type filename provider_metadata`,
  data: `${PART}data_type data data_id`,
  source: `${PART}source_type source_id url title media_type filename provider_metadata`,
  tool:
    `${PART}tool_call_id tool_name state input_text input output error title tool_metadata dynamic raw_input ` +
    "preliminary call_provider_metadata result_provider_metadata provider_executed",
  interaction:
    `${PART}interaction_id interaction_type status request:Request response:Response resolved_at resolved_by ` +
    "cancel_reason tool_call_id approval_mode",
  action: `${PART}action_id action_type state title description data`,
  error: `${PART}scope code message recoverable`,
  "step-start": PART.trim(),
  Request: "title description questions:Question expires_at",
  Question: "question_id question options:Option multiple",
  Option: "value label description",
  Response: "kind decision reason answers:Answer",
  Answer: "question_id value",
};

type Map_ = { readonly [name: string]: Value | undefined };

/** Return the message with its known fields alone. */
export const known = (message: Message): Value => ofForm("Message", message as unknown as Map_);

function ofForm(form: string, value: Map_): Value {
  const table = FORMS[form === "Part" ? String(value.type) : form] ?? "";
  const made: Record<string, Value> = {};
  for (const field of table.split(" ")) {
    const [name = "", inner] = field.split(":");
    const item = value[name];
    if (item !== undefined) {
      const one = (given: Value): Value => (inner ? ofForm(inner, given as Map_) : given);
      made[name] = inner && Array.isArray(item) ? item.map(one) : one(item);
    }
  }
  return made;
}
