/** The palette (⌘K): go to a chat, or do something. Loaded when it is first opened. */
import { Command } from "cmdk";
import {
  Archive,
  CircleStop,
  CopyPlus,
  MessageSquare,
  Monitor,
  Moon,
  SquarePen,
  Sun,
  Waypoints,
} from "lucide-react";
import type { Client } from "midstream-client";
import { useClient } from "midstream-client/react";
import { type ReactNode, useEffect, useRef } from "react";
import { Modal } from "../app/modal.js";
import { chatPath, navigate, type Route } from "../app/route.js";
import * as act from "../app/session_actions.js";
import { setTheme } from "../app/theme.js";
import { plain, titleFor } from "../sidebar/groups.js";
import { useSessionList } from "../sidebar/use_session_list.js";
import styles from "./palette.module.css";

interface Entry {
  readonly label: string;
  readonly icon: ReactNode;
  readonly run: () => void;
}

export function Palette({ route, onClose }: { readonly route: Route; readonly onClose: () => void }) {
  const client = useClient();
  const { sessions } = useSessionList();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus(); // a dialog gives the focus to its first element, which is a frame
  }, []);
  const run = (entry: () => void) => {
    onClose();
    entry();
  };
  return (
    <Modal label="Commands" className={styles.dialog} onClose={onClose}>
      <Command label="Commands" className={styles.palette} filter={found} loop>
        <Command.Input
          ref={input}
          className={styles.input}
          placeholder="Go to a chat, or do something"
          autoFocus
        />
        <Command.List className={styles.list} label="Results">
          <Command.Empty className={styles.empty}>Nothing is called that.</Command.Empty>
          {/* first what Enter may do at once */}
          <Group name="Page" entries={PAGE} onRun={run} />
          {route.kind === "chat" && (
            <Group name="This chat" entries={chatEntries(client, route.sessionId)} onRun={run} />
          )}
          <Command.Group heading="Chats">
            {sessions.map((session) => (
              <Command.Item
                key={session.session_id}
                value={session.session_id}
                keywords={[titleFor(session)]}
                onSelect={() => run(() => navigate(chatPath(session.session_id)))}
              >
                <MessageSquare aria-hidden />
                <span dir="auto">{titleFor(session)}</span>
              </Command.Item>
            ))}
          </Command.Group>
        </Command.List>
      </Command>
    </Modal>
  );
}

/** Whether all words that are typed are in what is shown; an id is nothing that a person looks for. */
function found(value: string, search: string, keywords: readonly string[] = []): number {
  const shown = plain(keywords.join(" ") || value);
  return plain(search)
    .split(/\s+/)
    .every((word) => shown.includes(word))
    ? 1
    : 0;
}

interface GroupProps {
  readonly name: string;
  readonly entries: readonly Entry[];
  readonly onRun: (run: () => void) => void;
}

function Group({ name, entries, onRun }: GroupProps) {
  return (
    <Command.Group heading={name}>
      {entries.map((entry) => (
        <Command.Item key={entry.label} onSelect={() => onRun(entry.run)}>
          {entry.icon}
          <span>{entry.label}</span>
        </Command.Item>
      ))}
    </Command.Group>
  );
}

const PAGE: readonly Entry[] = [
  { label: "New chat", icon: <SquarePen aria-hidden />, run: () => navigate("/") },
  { label: "Light theme", icon: <Sun aria-hidden />, run: () => setTheme("light") },
  { label: "Dark theme", icon: <Moon aria-hidden />, run: () => setTheme("dark") },
  { label: "Theme as the system", icon: <Monitor aria-hidden />, run: () => setTheme("system") },
];

function chatEntries(client: Client, sessionId: string): readonly Entry[] {
  const session = client.open(sessionId); // it is shown, so it is open
  const stop: Entry = {
    label: "Stop the answer",
    icon: <CircleStop aria-hidden />,
    run: () => void act.stop(session),
  };
  const isArchived = session.info?.archived_at !== undefined;
  return [
    ...(session.turn ? [stop] : []),
    {
      label: isArchived ? "Restore this chat" : "Archive this chat",
      icon: <Archive aria-hidden />,
      run: () => void act.archive(client, sessionId, !isArchived),
    },
    { label: "Copy this chat", icon: <CopyPlus aria-hidden />, run: () => void act.copy(session) },
    {
      label: "Check against the server",
      icon: <Waypoints aria-hidden />,
      run: () => void act.verify(session),
    },
  ];
}
