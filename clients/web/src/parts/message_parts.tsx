import type { FilePart, Message, Part, SourcePart } from "midstream-client";
import type { ReactNode } from "react";
import { Files } from "./file_part.js";
import { PartView } from "./part_view.js";
import styles from "./part_view.module.css";
import { Sources } from "./source_part.js";
import type { PartSession } from "./surroundings.js";

/** Parts that are drawn as one: neighbouring sources, neighbouring files, or a single part. */
function groupsOf(parts: readonly Part[]): readonly (readonly Part[])[] {
  const groups: Part[][] = [];
  for (const part of parts) {
    const group = groups.at(-1);
    if (group && group[0]?.type === part.type && (part.type === "source" || part.type === "file")) {
      group.push(part);
    } else {
      groups.push([part]);
    }
  }
  return groups;
}

/** Draw all parts of a message in order. */
export function MessageParts({
  message,
  session,
}: {
  readonly message: Message;
  readonly session: PartSession;
}) {
  return (
    <div className={styles.parts}>
      {groupsOf(message.parts).map((group) => drawn(group, message, session))}
    </div>
  );
}

function drawn(group: readonly Part[], message: Message, session: PartSession): ReactNode {
  const [part] = group;
  if (!part) {
    return null;
  }
  switch (part.type) {
    case "source":
      return <Sources key={part.part_id} parts={group as readonly SourcePart[]} />;
    case "file":
      return <Files key={part.part_id} parts={group as readonly FilePart[]} />;
    default:
      return <PartView key={part.part_id} part={part} message={message} session={session} />;
  }
}
