/** One chat of the list: where it leads, what happens in it, and what can be done to it. */
import { Archive, ArchiveRestore, Ellipsis, Pencil, Trash2 } from "lucide-react";
import type { SessionInfo } from "midstream-client";
import { useClient } from "midstream-client/react";
import { memo, useState } from "react";
import { classNames } from "../app/class_names.js";
import { Link } from "../app/link.js";
import { Menu } from "../app/menu.js";
import { ONLY_READS, useCanWrite } from "../app/rights.js";
import { chatPath } from "../app/route.js";
import { archive, remove, rename } from "../app/session_actions.js";
import { titleFor } from "./groups.js";
import styles from "./session_row.module.css";
import { TitleField } from "./title_field.js";

interface SessionRowProps {
  readonly session: SessionInfo;
  readonly isCurrent: boolean;
  readonly isUnread: boolean;
  readonly onGo: () => void;
}

export const SessionRow = memo(function SessionRow(props: SessionRowProps) {
  const { session, isCurrent, isUnread, onGo } = props;
  const client = useClient();
  const canWrite = useCanWrite();
  const may = canWrite ? {} : { isDisabled: true, hint: ONLY_READS };
  const [isRenaming, setRenaming] = useState(false);
  const title = titleFor(session);
  const id = session.session_id;
  if (isRenaming) {
    return (
      <li className={styles.row}>
        <TitleField
          title={session.title ?? ""}
          onDone={(next) => {
            setRenaming(false);
            if (next !== undefined) {
              void rename(client, id, next);
            }
          }}
        />
      </li>
    );
  }
  const isArchived = session.archived_at !== undefined;
  return (
    <li className={classNames(styles.row, isCurrent && styles.current)}>
      <Link
        className={styles.link}
        to={chatPath(id)}
        isCurrent={isCurrent}
        onDoubleClick={() => setRenaming(canWrite)}
        onGo={onGo}
      >
        <span className={classNames(styles.title, isUnread && styles.unread)} dir="auto" title={title}>
          {title}
        </span>
        <Badges session={session} isUnread={isUnread} />
      </Link>
      <Menu
        label={`What to do with ${title}`}
        className={styles.more}
        items={[
          { label: "Rename", icon: <Pencil aria-hidden />, onSelect: () => setRenaming(true), ...may },
          {
            label: isArchived ? "Restore" : "Archive",
            icon: isArchived ? <ArchiveRestore aria-hidden /> : <Archive aria-hidden />,
            onSelect: () => void archive(client, id, !isArchived),
            ...may,
          },
          {
            label: "Delete",
            icon: <Trash2 aria-hidden />,
            isDanger: true,
            onSelect: () => void remove(client, id, title),
            ...may,
          },
        ]}
      >
        <Ellipsis aria-hidden />
      </Menu>
    </li>
  );
});

function Badges({ session, isUnread }: { readonly session: SessionInfo; readonly isUnread: boolean }) {
  const asks = session.pending_interactions ?? 0;
  return (
    <span className={styles.badges}>
      {asks > 0 && (
        <span
          className={styles.asks}
          title={asks === 1 ? "Waits for your answer" : `${asks} wait for your answer`}
        >
          {asks}
          <span className="visually-hidden"> waiting for your answer</span>
        </span>
      )}
      {session.running_turn_id !== undefined && asks === 0 && (
        <span className={styles.running} title="The agent is answering">
          <span className="visually-hidden">The agent is answering</span>
        </span>
      )}
      {isUnread && session.running_turn_id === undefined && asks === 0 && (
        <span className={styles.new} title="Something new">
          <span className="visually-hidden">Unread</span>
        </span>
      )}
    </span>
  );
}
