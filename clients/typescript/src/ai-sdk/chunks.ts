/** What to stream so that the AI SDK has a message as it is now, where it had an earlier state of it. Pure. */
import type { ProviderMetadata, UIMessageChunk } from "ai";
import type { Mapped, ToolLike, UIPart } from "./messages.js";

/**
 * The chunks that lead from the parts told before to those of now; undefined where no chunks can: a part
 * that the AI SDK will not let go of was changed. (Then the message is to be streamed from its beginning.)
 */
export function chunksTo(told: readonly Mapped[], now: readonly Mapped[]): UIMessageChunk[] | undefined {
  const chunks: UIMessageChunk[] = [];
  for (const [at, one] of now.entries()) {
    const before = told[at];
    const more = before ? changed(before, one) : opened(one);
    if (!more) {
      return anew(told, now, at);
    }
    chunks.push(...more);
  }
  return now.length < told.length ? anew(told, now, now.length) : chunks;
}

/** Take the parts since the last step back and tell them again, where what is wrong is among them. */
function anew(told: readonly Mapped[], now: readonly Mapped[], at: number): UIMessageChunk[] | undefined {
  const step = told.map(({ part }) => part.type).lastIndexOf("step-start");
  if (at <= step) {
    return undefined;
  }
  return [{ type: "reset-step" }, ...now.slice(step + 1).flatMap(opened)];
}

/** A part from its beginning. */
function opened({ id, part }: Mapped): UIMessageChunk[] {
  if (isTool(part)) {
    return openedTool(part);
  }
  switch (part.type) {
    case "text":
    case "reasoning": {
      const { type, text } = part;
      const start: UIMessageChunk = { type: `${type}-start`, id, ...provider(part) };
      return [
        start,
        ...grown(type, id, text),
        ...(part.state === "streaming" ? [] : [ended(type, id, part)]),
      ];
    }
    case "step-start":
      return [{ type: "start-step" }];
    case "file":
      return [{ type: "file", url: part.url, mediaType: part.mediaType, ...provider(part) }];
    case "source-url":
    case "source-document":
      return [part];
    default:
      return "data" in part ? [part as UIMessageChunk] : [];
  }
}

const grown = (type: "text" | "reasoning", id: string, delta: string): UIMessageChunk[] =>
  delta ? [{ type: `${type}-delta`, id, delta }] : [];

const ended = (
  type: "text" | "reasoning",
  id: string,
  part: { readonly providerMetadata?: ProviderMetadata },
): UIMessageChunk => ({ type: `${type}-end`, id, ...provider(part) });

const provider = ({ providerMetadata }: { readonly providerMetadata?: ProviderMetadata }) =>
  providerMetadata ? { providerMetadata } : {};

export const isTool = (part: UIPart): part is ToolLike => "toolCallId" in part;

const nameOf = (part: ToolLike): string =>
  part.type === "dynamic-tool" ? part.toolName : part.type.slice("tool-".length);

/** What became of a part; undefined where that cannot be told. */
function changed(before: Mapped, { id, part }: Mapped): UIMessageChunk[] | undefined {
  const told = before.part;
  if (before.id !== id || told.type !== part.type) {
    return undefined;
  }
  if (isTool(part)) {
    return isTool(told) && told.toolCallId === part.toolCallId ? changedTool(told, part) : undefined;
  }
  if (part.type === "text" || part.type === "reasoning") {
    const old = told as typeof part;
    const isGrown = part.text.length > old.text.length;
    if (!part.text.startsWith(old.text) || (isGrown && old.state !== "streaming")) {
      return undefined;
    }
    const isOver = old.state === "streaming" && part.state !== "streaming";
    const more = grown(part.type, id, part.text.slice(old.text.length));
    return isOver ? [...more, ended(part.type, id, part)] : more;
  }
  if ("data" in part) {
    const old = told as typeof part;
    if (old.id !== part.id) {
      return undefined;
    }
    return isSame(old.data, part.data) ? [] : [part as UIMessageChunk];
  }
  return [];
}

function openedTool(part: ToolLike, isKnown = false): UIMessageChunk[] {
  const { toolCallId } = part;
  const head = {
    toolCallId,
    toolName: nameOf(part),
    ...(part.type === "dynamic-tool" && { dynamic: true }),
    ...(part.title !== undefined && { title: part.title }),
    ...(part.toolMetadata && { toolMetadata: part.toolMetadata }),
    ...(part.providerExecuted && { providerExecuted: true }),
    ...(part.callProviderMetadata && { providerMetadata: part.callProviderMetadata }),
  };
  if (part.state === "input-streaming") {
    const text = part.rawInput ?? "";
    return [{ type: "tool-input-start", ...head }, ...inputDelta(toolCallId, text)];
  }
  if (part.state === "output-error" && (part.input === undefined || isKnown)) {
    const { input, errorText } = part;
    const start: UIMessageChunk[] = isKnown ? [] : [{ type: "tool-input-start", ...head }];
    return [...start, { type: "tool-input-error", ...head, input, errorText }];
  }
  return [{ type: "tool-input-available", ...head, input: part.input }, ...moved(undefined, part)];
}

const inputDelta = (toolCallId: string, inputTextDelta: string): UIMessageChunk[] =>
  inputTextDelta ? [{ type: "tool-input-delta", toolCallId, inputTextDelta }] : [];

function changedTool(told: ToolLike, part: ToolLike): UIMessageChunk[] | undefined {
  if (told.state === "input-streaming") {
    if (part.state !== "input-streaming") {
      return openedTool(part, true); // the AI SDK finds the call that it has
    }
    const [before = "", now = ""] = [told.rawInput, part.rawInput];
    return now.startsWith(before) ? inputDelta(part.toolCallId, now.slice(before.length)) : undefined;
  }
  return part.state === "input-streaming" ? undefined : moved(told, part);
}

/** What was asked and answered about a call, and what came of it, as far as it is news. */
function moved(told: ToolLike | undefined, part: ToolLike): UIMessageChunk[] {
  const { toolCallId } = part;
  const chunks: UIMessageChunk[] = [];
  const [before, now] = [told?.approval, part.approval];
  if (now && now.id !== before?.id) {
    const { id: approvalId, descriptor: approvalDescriptor, requestReason: reason, isAutomatic } = now;
    const asked = { approvalId, toolCallId, approvalDescriptor, ...(reason && { reason }) };
    chunks.push({ type: "tool-approval-request", ...asked, ...(isAutomatic && { isAutomatic }) });
  }
  if (now?.approved !== undefined && (now.id !== before?.id || before?.approved === undefined)) {
    const { id: approvalId, approved, reason } = now;
    chunks.push({ type: "tool-approval-response", approvalId, approved, ...(reason && { reason }) });
  }
  return [...chunks, ...outcome(told, part)];
}

function outcome(told: ToolLike | undefined, part: ToolLike): UIMessageChunk[] {
  const { toolCallId } = part;
  if (part.state === "output-denied") {
    return told?.state === part.state ? [] : [{ type: "tool-output-denied", toolCallId }];
  }
  if (part.state === "output-error") {
    const { errorText, resultProviderMetadata: providerMetadata } = part;
    const meta = providerMetadata ? { providerMetadata } : {};
    return told?.state === part.state ? [] : [{ type: "tool-output-error", toolCallId, errorText, ...meta }];
  }
  if (part.state !== "output-available") {
    return [];
  }
  const { output, preliminary = false, resultProviderMetadata: providerMetadata } = part;
  const isTold =
    told?.state === "output-available" &&
    (told.preliminary ?? false) === preliminary &&
    isSame(told.output, output);
  const meta = providerMetadata ? { providerMetadata } : {};
  const flag = preliminary ? { preliminary } : {};
  return isTold ? [] : [{ type: "tool-output-available", toolCallId, output, ...flag, ...meta }];
}

/** Whether two values say the same. */
const isSame = (one: unknown, other: unknown): boolean =>
  Object.is(one, other) || JSON.stringify(one) === JSON.stringify(other);
