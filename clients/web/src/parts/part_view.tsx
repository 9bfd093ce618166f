import type { Message, Part } from "midstream-client";
import { Markdown } from "../markdown/markdown.js";
import type { PartSession } from "./surroundings.js";

/** What draws a part. */
export interface PartProps {
  readonly part: Part;
  /** The message that the part is of. */
  readonly message: Message;
  /** Where answers go to. */
  readonly session: PartSession;
  /** Whether it is the last part of the message. */
  readonly isLast: boolean;
}

/** Draw one part of a message, of any type. */
export function PartView({ part, message }: PartProps) {
  switch (part.type) {
    case "text":
      return message.role === "agent" ? (
        <Markdown text={part.text} streaming={part.state === "streaming"} />
      ) : (
        <div style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{part.text}</div>
      );
    case "step-start":
      return null;
    default:
      return <pre style={{ overflowX: "auto" }}>{JSON.stringify(part, undefined, 2)}</pre>;
  }
}
