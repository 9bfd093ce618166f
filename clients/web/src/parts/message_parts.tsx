import type { Message } from "midstream-client";
import { PartView } from "./part_view.js";
import type { PartSession } from "./surroundings.js";

/** Draw all parts of a message in order; neighbours that belong together (sources, files) are drawn as one. */
export function MessageParts({
  message,
  session,
}: {
  readonly message: Message;
  readonly session: PartSession;
}) {
  const last = message.parts.length - 1;
  return message.parts.map((part, index) => (
    <PartView key={part.part_id} part={part} message={message} session={session} isLast={index === last} />
  ));
}
