/** Messages as assistant-ui has them: what each part of the model becomes. Pure. */
import type { AppendMessage, ThreadMessageLike } from "@assistant-ui/react";
import type { PromptParams } from "../protocol/calls.js";
import type {
  FilePart,
  InteractionPart,
  Message,
  Part,
  Question,
  QuestionAnswer,
  ToolPart,
  Turn,
  UserPart,
  Value,
} from "../protocol/model.js";

type Content = Exclude<ThreadMessageLike["content"], string>[number];
type ToolCall = Extract<Content, { type: "tool-call" }>;
type Approval = NonNullable<ToolCall["approval"]>;
type Status = NonNullable<ThreadMessageLike["status"]>;

/** The names of the tool calls that stand for what is asked without a tool of the agent's. */
export const QUESTION = "midstream_question";
export const APPROVAL = "midstream_approval";

interface Known {
  readonly outcome: string | undefined;
  readonly like: ThreadMessageLike;
}

const known = new WeakMap<Message, Known>();

/** The messages of a session, and after them the prompts that the server has not accepted yet. */
export function toThreadMessages(
  messages: readonly Message[],
  turns: ReadonlyMap<string, Turn>,
  pending: readonly PromptParams[] = [],
): ThreadMessageLike[] {
  const seen = new Set<string>();
  const likes: ThreadMessageLike[] = [];
  for (const message of [...messages].reverse()) {
    const { turn_id, role } = message;
    // how a turn ended is said at its last message
    const isLast = role === "agent" && turn_id !== undefined && !seen.has(turn_id);
    if (isLast) {
      seen.add(turn_id);
    }
    likes.push(toThreadMessage(message, isLast ? turns.get(turn_id) : undefined));
  }
  return [...likes.reverse(), ...pending.map(promptMessage)];
}

/** One message; `turn` where it is the turn's last. The same object as long as nothing of it changed. */
export function toThreadMessage(message: Message, turn?: Turn): ThreadMessageLike {
  const before = known.get(message);
  if (before && before.outcome === turn?.state) {
    return before.like;
  }
  const { message_id: id, turn_id, created_at, origin } = message;
  const isAgent = message.role === "agent";
  const like: ThreadMessageLike = {
    id,
    role: isAgent ? "assistant" : "user",
    createdAt: new Date(created_at),
    content: contentOf(message),
    ...(isAgent && { status: statusOf(message, turn) }),
    metadata: { custom: { ...(turn_id && { turn_id }), ...(origin && { origin }) } },
  };
  known.set(message, { outcome: turn?.state, like });
  return like;
}

const prompts = new WeakMap<PromptParams, ThreadMessageLike>();

function promptMessage(prompt: PromptParams): ThreadMessageLike {
  let like = prompts.get(prompt);
  if (!like) {
    const content = prompt.parts.flatMap((part, at) =>
      contentPart({ part_id: `${at + 1}`, ...part } as Part, []),
    );
    like = { id: prompt.message_id, role: "user", content, metadata: { isOptimistic: true } };
    prompts.set(prompt, like);
  }
  return like;
}

function statusOf(message: Message, turn: Turn | undefined): Status {
  if (message.state === "streaming") {
    return message.parts.some(isPending)
      ? { type: "requires-action", reason: "tool-calls" }
      : { type: "running" };
  }
  if (turn?.state === "failed") {
    return { type: "incomplete", reason: "error", error: turn.error?.message ?? "The turn failed." };
  }
  return turn?.state === "stopped"
    ? { type: "incomplete", reason: "cancelled" }
    : { type: "complete", reason: "stop" };
}

const isPending = (part: Part) => part.type === "interaction" && part.status === "pending";

const contentOf = ({ parts }: Message): Content[] => parts.flatMap((part) => contentPart(part, parts));

/** What a part becomes, if anything: a step boundary is nothing here, and neither is what its tool says. */
function contentPart(part: Part, all: readonly Part[]): Content[] {
  switch (part.type) {
    case "text":
    case "reasoning": {
      const { type, text, part_id: id, provider_metadata: providerMetadata } = part;
      return [{ type, id, text, ...(providerMetadata && { providerMetadata: providerMetadata as never }) }];
    }
    case "file":
      return [filePart(part)];
    case "source":
      return [sourcePart(part)];
    case "tool":
      return [toolCall(part, approvalOf(part, all))];
    case "interaction":
      return isOfTool(part, all) ? [] : [askedCall(part)];
    case "data":
      return [dataPart(part.data_type, part.data_id ?? part.part_id, part.data)];
    case "context":
      return [dataPart("context", part.part_id, { tag: part.tag, context: part.context })];
    case "action":
      return [dataPart("action", part.action_id, part as unknown as Value)];
    case "error":
      return [dataPart("error", part.part_id, part as unknown as Value)];
    case "step-start":
      return [];
  }
}

const dataPart = (name: string, id: string, data: Value): Content => ({ type: "data", name, id, data });

function filePart({ url, media_type: mimeType, filename }: FilePart): Content {
  const named = filename ? { filename } : {};
  // what assistant-ui takes for an image: data, or a safe address
  return mimeType.startsWith("image/") && /^(https:|blob:|data:image\/)/i.test(url)
    ? { type: "image", image: url, ...named }
    : { type: "file", data: url, mimeType, sourceType: "url", ...named };
}

function sourcePart(part: Extract<Part, { type: "source" }>): Content {
  const { source_id: id, title, url = "", media_type: mediaType = "", filename } = part;
  return part.source_type === "url"
    ? { type: "source", sourceType: "url", id, url, ...(title && { title }) }
    : {
        type: "source",
        sourceType: "document",
        id,
        title: title ?? "",
        mediaType,
        ...(filename && { filename }),
      };
}

const isOfTool = (asked: InteractionPart, all: readonly Part[]): boolean =>
  asked.tool_call_id !== undefined &&
  all.some((part) => part.type === "tool" && part.tool_call_id === asked.tool_call_id);

/** What was last asked about a call. */
const approvalOf = (tool: ToolPart, all: readonly Part[]): InteractionPart | undefined =>
  all
    .filter(
      (part): part is InteractionPart =>
        part.type === "interaction" && part.tool_call_id === tool.tool_call_id,
    )
    .at(-1);

function toolCall(part: ToolPart, asked: InteractionPart | undefined): ToolCall {
  const { input, input_text, raw_input, output, title, tool_metadata } = part;
  const isMap = typeof input === "object" && input !== null && !Array.isArray(input);
  const argsText = input_text ?? raw_input ?? (input === undefined ? "" : JSON.stringify(input));
  return {
    type: "tool-call",
    toolCallId: part.tool_call_id,
    toolName: part.tool_name,
    argsText,
    ...(isMap && { args: input as never }),
    ...(part.state === "failed" && { result: part.error ?? "failed", isError: true }),
    ...(part.state === "completed" && { result: output ?? null }),
    ...(part.state === "running" && output !== undefined && { result: output, isPreliminary: true }),
    ...((title || tool_metadata) && { artifact: { title, tool_metadata } }),
    ...(asked && { approval: approvalPart(asked) }),
  };
}

/** What is asked without a tool, as a call of a tool by the name of {@link QUESTION} or {@link APPROVAL}. */
function askedCall(asked: InteractionPart): ToolCall {
  const { interaction_id, interaction_type, status, request, response } = asked;
  const isOpen = status === "pending";
  return {
    type: "tool-call",
    toolCallId: interaction_id,
    toolName: interaction_type === "question" ? QUESTION : APPROVAL,
    args: request as never,
    approval: approvalPart(asked),
    ...(!isOpen && { result: response ?? status, ...(!response && { isError: true }) }),
  };
}

/** What was asked, and what was answered. */
function approvalPart(asked: InteractionPart): Approval {
  const { interaction_id: id, status, request, response, approval_mode } = asked;
  const { title, description, questions } = request;
  const isOver = status === "expired" || status === "cancelled";
  return {
    id,
    prompt: description ? `${title}\n${description}` : title,
    display: questions ? "questions" : "decision",
    ...(questions && { questions: questions.map(questionPart) }),
    ...(isOver && { resolution: status }),
    ...(approval_mode && { isAutomatic: true }),
    ...(response?.kind === "approval" && {
      approved: response.decision === "approved",
      ...(response.reason !== undefined && { reason: response.reason }),
    }),
    ...(response?.kind === "question" && {
      approved: true,
      answers: answersPart(response.answers, questions),
    }),
  };
}

type AskedQuestion = NonNullable<Approval["questions"]>[number];
type GivenAnswers = NonNullable<Approval["answers"]>;

const questionPart = ({ question_id: id, question: prompt, options, multiple }: Question): AskedQuestion => ({
  id,
  prompt,
  ...(multiple && { multiple }),
  allowFreeform: !options,
  ...(options && {
    options: options.map(({ value, label, description }) => ({
      id: value,
      label: label ?? value,
      ...(description && { description }),
    })),
  }),
});

const answersPart = (answers: readonly QuestionAnswer[], questions: readonly Question[] = []): GivenAnswers =>
  Object.fromEntries(
    answers.map(({ question_id, value }) => {
      const isChoice = questions.find((one) => one.question_id === question_id)?.options;
      const values = typeof value === "string" ? [value] : value;
      return [question_id, isChoice ? { optionIds: values } : { text: values.join(", ") }];
    }),
  );

/** The answers to all questions of an interaction, as a session takes them. */
export const toAnswers = (
  questions: readonly Question[],
  answers: GivenAnswers,
): { [questionId: string]: string | readonly string[] } =>
  Object.fromEntries(
    questions.map(({ question_id, multiple }) => {
      const { optionIds = [], text } = answers[question_id] ?? {};
      const values = text === undefined ? optionIds : [...optionIds, text];
      return [question_id, multiple ? values : (values[0] ?? "")];
    }),
  );

/** The parts of a prompt: what was typed, and what was attached. */
export function toUserParts(message: Pick<AppendMessage, "content" | "attachments">): UserPart[] {
  const attached = (message.attachments ?? []).flatMap(({ content, contentType, name }) =>
    (content ?? []).flatMap((part) => userPart(part, contentType, name)),
  );
  return [...message.content.flatMap((part) => userPart(part)), ...attached];
}

function userPart(part: AppendMessage["content"][number], contentType?: string, name?: string): UserPart[] {
  switch (part.type) {
    case "text":
      return part.text ? [{ type: "text", text: part.text }] : [];
    case "image": {
      const filename = part.filename ?? name;
      const media_type = /^data:([^;,]+)/.exec(part.image)?.[1] ?? contentType ?? "image/*";
      return [{ type: "file", url: part.image, media_type, ...(filename && { filename }) }];
    }
    case "file": {
      const filename = part.filename ?? name;
      const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(part.data);
      const url = isUrl ? part.data : `data:${part.mimeType};base64,${part.data}`;
      return [{ type: "file", url, media_type: part.mimeType, ...(filename && { filename }) }];
    }
    case "data":
      return [
        {
          type: "data",
          data_type: part.name,
          data: part.data as Value,
          ...(part.id && { data_id: part.id }),
        },
      ];
    default:
      return [];
  }
}
