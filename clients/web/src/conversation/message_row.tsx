/** A row of the list: a message in its frame, or a prompt that is on its way. */
import { ArrowUpRight, BookText } from "lucide-react";
import type { Message, Turn } from "midstream-client";
import { memo } from "react";
import { classNames } from "../app/class_names.js";
import { ErrorBoundary } from "../app/error_boundary.js";
import { Link } from "../app/link.js";
import { chatPath } from "../app/route.js";
import { MessageParts } from "../parts/message_parts.js";
import type { Actions } from "./actions.js";
import { EditMessage } from "./edit_message.js";
import styles from "./message_row.module.css";
import { clockTime, Meta } from "./meta.js";
import { PendingRow } from "./pending_row.js";
import type { Row } from "./rows.js";
import { SummaryNote } from "./summary_note.js";
import { TurnEnding } from "./turn_ending.js";

interface MessageRowProps {
  readonly row: Row;
  readonly actions: Actions;
  readonly isEditing: boolean;
  readonly isLive: boolean;
}

/** Renders again only where its row changed: while text streams, that is one row. */
export const MessageRow = memo(function MessageRow(props: MessageRowProps) {
  const { row, actions, isEditing, isLive } = props;
  const { message, prompt } = row;
  return (
    <div className={classNames(styles.row, row.goesOn && styles.goesOn)}>
      {row.day && (
        <div className={styles.day}>
          <span>{row.day}</span>
        </div>
      )}
      {prompt && <PendingRow prompt={prompt} actions={actions} isLive={isLive} />}
      {message && <Frame message={message} ending={row.ending} actions={actions} isEditing={isEditing} />}
      {row.summarized !== undefined && <SummaryNote session={actions.session} through={row.summarized} />}
      {row.copiedFrom && <CopiedFrom sessionId={row.copiedFrom} />}
    </div>
  );
});

interface FrameProps {
  readonly message: Message;
  readonly ending: Turn | undefined;
  readonly actions: Actions;
  readonly isEditing: boolean;
}

function Frame({ message, ending, actions, isEditing }: FrameProps) {
  const isUser = message.role === "user";
  const name = `${isUser ? "You" : "Agent"}, ${clockTime(message.created_at)}`;
  if (isEditing) {
    return (
      <article className={styles.user} aria-label={name}>
        <EditMessage message={message} actions={actions} />
      </article>
    );
  }
  return (
    <article
      className={isUser ? styles.user : styles.agent}
      aria-label={name}
      data-message={message.message_id}
    >
      <div className={isUser ? styles.bubble : styles.plain} dir={isUser ? "auto" : undefined}>
        <ErrorBoundary small="This message could not be drawn." of={message.revision}>
          <MessageParts message={message} session={actions.session} />
        </ErrorBoundary>
      </div>
      {ending && <TurnEnding turn={ending} message={message} actions={actions} />}
      {message.state !== "streaming" && <Meta message={message} actions={actions} />}
    </article>
  );
}

/** Ends the messages that a fork took over. */
function CopiedFrom({ sessionId }: { readonly sessionId: string }) {
  return (
    <div className={styles.mark}>
      <Link to={chatPath(sessionId)}>
        <BookText aria-hidden />
        Copied from another chat up to here
        <ArrowUpRight aria-hidden />
      </Link>
    </div>
  );
}
