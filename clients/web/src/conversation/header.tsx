/** The head of a chat: its title, how approvals are given, and what can be done with it. */
import {
  Archive,
  ArchiveRestore,
  CopyPlus,
  Ellipsis,
  Eraser,
  Pencil,
  Shield,
  ShieldCheck,
  Trash2,
  Waypoints,
} from "lucide-react";
import type { SessionSnapshot } from "midstream-client/react";
import { useClient } from "midstream-client/react";
import { useState } from "react";
import { freshTitle } from "../app/fresh.js";
import { Menu } from "../app/menu.js";
import { ONLY_READS, useCanWrite } from "../app/rights.js";
import * as act from "../app/session_actions.js";
import { titleFor } from "../sidebar/groups.js";
import { TitleField } from "../sidebar/title_field.js";
import styles from "./header.module.css";
import { ListButton } from "./list_button.js";

export function Header({ snapshot }: { readonly snapshot: SessionSnapshot }) {
  const { info, session } = snapshot;
  const client = useClient();
  const canWrite = useCanWrite();
  const [isRenaming, setRenaming] = useState(false);
  const title = info ? titleFor(info) : (freshTitle(session.sessionId) ?? "");
  return (
    <header className={styles.header}>
      <ListButton />
      {isRenaming ? (
        <TitleField
          title={info?.title ?? ""}
          onDone={(next) => {
            setRenaming(false);
            if (next !== undefined) {
              void act.rename(client, session.sessionId, next);
            }
          }}
        />
      ) : (
        <h1 className={styles.title}>
          <button
            type="button"
            onClick={() => setRenaming(true)}
            disabled={!info || !canWrite}
            title={canWrite ? `${title} (rename)` : title}
            dir="auto"
          >
            {title}
          </button>
        </h1>
      )}
      {info && (
        <div className={styles.tools}>
          <ApprovalMenu snapshot={snapshot} />
          <ChatMenu snapshot={snapshot} onRename={() => setRenaming(true)} />
        </div>
      )}
    </header>
  );
}

function ApprovalMenu({ snapshot: { info, session } }: { readonly snapshot: SessionSnapshot }) {
  const isDisabled = !useCanWrite();
  const isAlways = info?.approval_mode === "always-allow";
  const by = info?.approval_mode_by;
  return (
    <Menu
      label={
        isAlways ? "Allows everything: the agent does not ask" : "Asks first: the agent asks before it acts"
      }
      className={isAlways ? `${styles.mode} ${styles.always}` : styles.mode}
      note={by && `Set by ${by}`}
      items={[
        {
          label: "Ask for approval",
          hint: "A person decides each time",
          icon: <ShieldCheck aria-hidden />,
          isChosen: !isAlways,
          isDisabled,
          onSelect: () => isAlways && void act.askAgain(session),
        },
        {
          label: "Allow everything",
          hint: "The agent acts at once, without asking",
          icon: <Shield aria-hidden />,
          isChosen: isAlways,
          isDisabled,
          onSelect: () => !isAlways && void act.allowAlways(session),
        },
      ]}
    >
      {isAlways ? <Shield aria-hidden /> : <ShieldCheck aria-hidden />}
      <span>{isAlways ? "Allows everything" : "Asks first"}</span>
    </Menu>
  );
}

interface ChatMenuProps {
  readonly snapshot: SessionSnapshot;
  readonly onRename: () => void;
}

function ChatMenu({ snapshot: { info, session, turn }, onRename }: ChatMenuProps) {
  const client = useClient();
  const id = session.sessionId;
  const isArchived = info?.archived_at !== undefined;
  const may = useCanWrite() ? {} : { isDisabled: true, hint: ONLY_READS };
  const busy = turn ? { isDisabled: true, hint: "Not while the agent answers", ...may } : may;
  return (
    <Menu
      label="What to do with this chat"
      items={[
        { label: "Rename", icon: <Pencil aria-hidden />, onSelect: onRename, ...may },
        {
          label: "Copy the chat",
          icon: <CopyPlus aria-hidden />,
          onSelect: () => void act.copy(session),
          ...may,
        },
        {
          label: "Check against the server",
          hint: "Compares every message by digest",
          icon: <Waypoints aria-hidden />,
          onSelect: () => void act.verify(session),
        },
        {
          label: isArchived ? "Restore" : "Archive",
          icon: isArchived ? <ArchiveRestore aria-hidden /> : <Archive aria-hidden />,
          onSelect: () => void act.archive(client, id, !isArchived),
          ...busy,
        },
        {
          label: "Remove all messages",
          icon: <Eraser aria-hidden />,
          onSelect: () => void act.clear(session),
          ...busy,
        },
        {
          label: "Delete",
          icon: <Trash2 aria-hidden />,
          isDanger: true,
          onSelect: () => void act.remove(client, id, titleFor(info)),
          ...may,
        },
      ]}
    >
      <Ellipsis aria-hidden />
    </Menu>
  );
}
