import type { InteractionPart, Message, Part } from "midstream-client";
import { memo } from "react";
import { Markdown } from "../markdown/markdown.js";
import { ActionView } from "./action_part.js";
import { ContextView } from "./context_part.js";
import { DataPartView } from "./data_part.js";
import { ErrorView } from "./error_part.js";
import { Files } from "./file_part.js";
import { InteractionView } from "./interaction_part.js";
import styles from "./part_view.module.css";
import { ReasoningView } from "./reasoning_part.js";
import { askedAbout, isAtTool } from "./related.js";
import { Sources } from "./source_part.js";
import type { PartSession } from "./surroundings.js";
import { ToolView } from "./tool_part.js";
import { PartBoundary, UnknownView } from "./unknown_part.js";

/** What draws a part. */
interface PartProps {
  readonly part: Part;
  /** The message that the part is of. */
  readonly message: Message;
  /** Where answers go to. */
  readonly session: PartSession;
}

const NOTHING_ASKED: readonly InteractionPart[] = [];

/** Draw one part of a message, of any type. It is drawn again only when the part itself, or what is drawn with it, changed. */
export function PartView({ part, message, session }: PartProps) {
  if (part.type === "interaction" && isAtTool(message, part)) {
    return null; // drawn at its tool
  }
  const asked = part.type === "tool" ? askedAbout(message, part) : NOTHING_ASKED;
  // of other types the drawing does not depend on it, and they should not be drawn again when a part follows
  const isEnd = part.type === "error" && part === message.parts.at(-1);
  return <OnePart part={part} message={message} session={session} asked={asked} isEnd={isEnd} />;
}

interface OnePartProps extends PartProps {
  readonly asked: readonly InteractionPart[];
  /** An error that ends its message; one that something follows was recovered from. */
  readonly isEnd: boolean;
}

/** The message is another object whenever one of its parts changes: of it only what never changes counts. */
const OnePart = memo(
  function OnePart(props: OnePartProps) {
    const id = `${props.message.message_id} ${props.part.part_id}`;
    return (
      <PartBoundary part={props.part} id={id}>
        <Drawn {...props} />
      </PartBoundary>
    );
  },
  (a, b) =>
    a.part === b.part &&
    a.isEnd === b.isEnd &&
    a.session === b.session &&
    a.message.message_id === b.message.message_id &&
    a.asked.length === b.asked.length &&
    a.asked.every((part, index) => part === b.asked[index]),
);

function Drawn({ part, message, session, asked, isEnd }: OnePartProps) {
  const messageId = message.message_id;
  switch (part.type) {
    case "text":
      return message.role === "agent" ? (
        <Markdown text={part.text} streaming={part.state === "streaming"} />
      ) : (
        <div className={styles.said} dir="auto">
          {part.text}
        </div>
      );
    case "reasoning":
      return <ReasoningView part={part} messageId={messageId} />;
    case "tool":
      return <ToolView part={part} messageId={messageId} asked={asked} session={session} />;
    case "interaction":
      return <InteractionView part={part} session={session} />;
    case "source":
      return <Sources parts={[part]} />;
    case "file":
      return <Files parts={[part]} />;
    case "data":
      return <DataPartView part={part} messageId={messageId} />;
    case "action":
      return <ActionView part={part} messageId={messageId} />;
    case "error":
      return <ErrorView part={part} message={message} isEnd={isEnd} />;
    case "context":
      return <ContextView part={part} messageId={messageId} />;
    case "step-start":
      return part.sequence > 1 ? <hr className={styles.step} /> : null;
    default:
      return <UnknownView part={part} id={`${messageId} ${(part as { part_id: string }).part_id}`} />;
  }
}
