/** Messages as the AI SDK has them: what each part of the model becomes. Pure. */
import type { DynamicToolUIPart, ProviderMetadata, ToolUIPart, UIMessage } from "ai";
import type { PromptParams } from "../protocol/calls.js";
import type { InteractionPart, Message, Part, ToolPart, UserPart, Value } from "../protocol/model.js";

export type UIPart = UIMessage["parts"][number];
export type ToolLike = ToolUIPart | DynamicToolUIPart;

/** A part for the AI SDK, and the id under which it is streamed. */
export interface Mapped {
  readonly id: string;
  readonly part: UIPart;
}

/** What the metadata of a message says. */
export interface MessageMetadata {
  readonly created_at?: number;
  readonly turn_id?: string;
}

const known = new WeakMap<Message, UIMessage>();

/** The message as the AI SDK has it; the same object as long as the message is. */
export function toUIMessage(message: Message): UIMessage {
  let found = known.get(message);
  if (!found) {
    found = {
      id: message.message_id,
      role: message.role === "agent" ? "assistant" : "user",
      metadata: metadataOf(message),
      parts: mappedParts(message).map(({ part }) => part),
    };
    known.set(message, found);
  }
  return found;
}

/** Messages, and after them the prompts that the server has not accepted yet. */
export function toUIMessages(
  messages: readonly Message[],
  pending: readonly PromptParams[] = [],
): UIMessage[] {
  return [...messages.map(toUIMessage), ...pending.map(promptMessage)];
}

const prompts = new WeakMap<PromptParams, UIMessage>();

/** A prompt, as the message that it will become. */
export function promptMessage(prompt: PromptParams): UIMessage {
  let found = prompts.get(prompt);
  if (!found) {
    const parts = prompt.parts.map((part, at) => mappedPart({ part_id: `${at + 1}`, ...part } as Part));
    found = { id: prompt.message_id, role: "user", parts };
    prompts.set(prompt, found);
  }
  return found;
}

export const metadataOf = ({ created_at, turn_id }: Message): MessageMetadata => ({
  created_at,
  ...(turn_id !== undefined && { turn_id }),
});

/** The parts for the AI SDK, in order. What is asked about a tool call is in the part of the call. */
export function mappedParts({ parts }: Message): Mapped[] {
  const calls = new Set(parts.map((part) => part.type === "tool" && part.tool_call_id));
  const mapped: Mapped[] = [];
  for (const part of parts) {
    if (part.type === "interaction" && isApprovalOf(part) && calls.has(part.tool_call_id as string)) {
      continue;
    }
    const asked = part.type === "tool" ? approvalOf(part, parts) : undefined;
    const now = part.type === "tool" ? toolPart(part, asked) : mappedPart(part);
    // of data with one id there is one part, as in the AI SDK: later data replaces it where it stands
    const before = "data" in now ? mapped.findIndex((one) => isSameData(one.part, now)) : -1;
    mapped[before < 0 ? mapped.length : before] = { id: part.part_id, part: now };
  }
  return mapped;
}

const isApprovalOf = (part: InteractionPart) => part.interaction_type === "approval" && part.tool_call_id;

const isSameData = (one: UIPart, other: UIPart) =>
  "data" in one && "data" in other && one.type === other.type && one.id === other.id;

/** The last approval that was asked for a call. */
const approvalOf = (tool: ToolPart, parts: readonly Part[]): InteractionPart | undefined =>
  parts
    .filter(
      (part): part is InteractionPart =>
        part.type === "interaction" && !!isApprovalOf(part) && part.tool_call_id === tool.tool_call_id,
    )
    .at(-1);

/** One part, but for tools. */
function mappedPart(part: Part): UIPart {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text, ...state(part.state), ...provider(part) };
    case "reasoning":
      return { type: "reasoning", id: part.part_id, text: part.text, state: part.state, ...provider(part) };
    case "file": {
      const { url, media_type: mediaType, filename } = part;
      return { type: "file", url, mediaType, ...(filename && { filename }), ...provider(part) };
    }
    case "source":
      return sourcePart(part);
    case "step-start":
      return { type: "step-start" };
    case "data":
      return dataPart(part.data_type, part.data_id ?? part.part_id, part.data);
    case "context":
      return dataPart("context", part.part_id, { tag: part.tag, context: part.context });
    case "interaction":
      return dataPart("interaction", part.interaction_id, without(part));
    case "action":
      return dataPart("action", part.action_id, without(part));
    case "error":
      return dataPart("error", part.part_id, without(part));
    case "tool":
      return toolPart(part, undefined);
  }
}

function sourcePart(part: Extract<Part, { type: "source" }>): UIPart {
  const { source_id: sourceId, title, filename } = part;
  if (part.source_type === "url") {
    return { type: "source-url", sourceId, url: part.url ?? "", ...(title && { title }), ...provider(part) };
  }
  return {
    type: "source-document",
    sourceId,
    mediaType: part.media_type ?? "",
    title: title ?? "",
    ...(filename && { filename }),
    ...provider(part),
  };
}

const dataPart = (name: string, id: string, data: Value): UIPart => ({ type: `data-${name}`, id, data });

const state = (state: "streaming" | "done" | undefined) => (state ? { state } : {});

const provider = ({ provider_metadata }: { readonly provider_metadata?: unknown }) =>
  provider_metadata ? { providerMetadata: provider_metadata as ProviderMetadata } : {};

/** What a part says, without where it stands. */
function without({ type: _, part_id: __, sequence: ___, step_id: ____, ...own }: Part): Value {
  return own as unknown as Value;
}

/** A tool call, with what was asked about it. */
function toolPart(part: ToolPart, asked: InteractionPart | undefined): ToolLike {
  const { tool_call_id: toolCallId, tool_name: toolName, title, tool_metadata: toolMetadata } = part;
  return {
    ...(part.dynamic ? { type: "dynamic-tool", toolName } : { type: `tool-${toolName}` }),
    toolCallId,
    ...(title !== undefined && { title }),
    ...(toolMetadata && { toolMetadata }),
    ...(part.provider_executed && { providerExecuted: true }),
    ...(part.call_provider_metadata && { callProviderMetadata: part.call_provider_metadata }),
    ...toolState(part, asked),
  } as ToolLike;
}

function toolState(part: ToolPart, asked: InteractionPart | undefined): object {
  if (part.state === "input-streaming") {
    const { input_text: rawInput } = part;
    return { state: "input-streaming", input: parsed(rawInput), ...(rawInput && { rawInput }) };
  }
  const { input, output, result_provider_metadata: resultProviderMetadata } = part;
  const ended = { input: input ?? part.raw_input, ...(resultProviderMetadata && { resultProviderMetadata }) };
  const approval = asked && approvalPart(asked);
  const isDenied = approval?.approved === false;
  const agreed = approval?.approved === true ? { approval } : {};
  if (part.state === "failed") {
    return isDenied
      ? { state: "output-denied", input, approval }
      : {
          state: "output-error",
          ...ended,
          errorText: part.error ?? "failed",
          ...agreed,
        };
  }
  if (part.state === "completed" || (part.state === "running" && output !== undefined)) {
    const preliminary = part.preliminary ? { preliminary: true } : {};
    return { state: "output-available", ...ended, output: output ?? null, ...agreed, ...preliminary };
  }
  if (approval && (asked.status === "pending" || approval.approved !== undefined)) {
    const state = asked.status === "pending" ? "approval-requested" : "approval-responded";
    return { state, input, approval };
  }
  return { state: "input-available", input };
}

interface ApprovalUI {
  readonly id: string;
  readonly descriptor: unknown;
  readonly requestReason: string;
  readonly isAutomatic?: true;
  readonly approved?: boolean;
  readonly reason?: string;
}

/** What was asked, and what was answered. */
function approvalPart({ interaction_id, request, response, approval_mode }: InteractionPart): ApprovalUI {
  return {
    id: interaction_id,
    descriptor: request,
    requestReason: request.description ?? request.title,
    ...(approval_mode && { isAutomatic: true }),
    ...(response?.kind === "approval" && {
      approved: response.decision === "approved",
      ...(response.reason !== undefined && { reason: response.reason }),
    }),
  };
}

/** Arguments that are complete; undefined before. */
function parsed(text: string | undefined): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** The parts of a prompt. What cannot be said to an agent is left out. */
export function toUserParts({ parts }: UIMessage): UserPart[] {
  return parts.flatMap((part): UserPart[] => {
    if (part.type === "text") {
      return part.text ? [{ type: "text", text: part.text }] : [];
    }
    if (part.type === "file") {
      const { url, mediaType: media_type, filename } = part;
      return [{ type: "file", url, media_type, ...(filename && { filename }) }];
    }
    if (part.type === "data-context") {
      return [{ type: "context", ...(part.data as { tag: string; context: string }) }];
    }
    if ("data" in part) {
      const { id } = part;
      const data_type = part.type.slice("data-".length);
      return [{ type: "data", data_type, data: part.data as Value, ...(id && { data_id: id }) }];
    }
    return [];
  });
}
