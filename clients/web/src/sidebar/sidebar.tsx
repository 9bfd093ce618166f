/** The list of chats, and what leads elsewhere. */
import {
  Archive,
  ArrowLeft,
  LogOut,
  Monitor,
  Moon,
  Search,
  SquarePen,
  Sun,
  UserRound,
  X,
} from "lucide-react";
import type { SessionInfo } from "midstream-client";
import { type UIEvent, useDeferredValue, useEffect, useMemo, useState } from "react";
import controls from "../app/controls.module.css";
import { confirmed } from "../app/dialog.js";
import { commandKey } from "../app/keyboard.js";
import { Link } from "../app/link.js";
import { Menu } from "../app/menu.js";
import { useReader } from "../app/rights.js";
import type { Route } from "../app/route.js";
import { useShell } from "../app/shell.js";
import { setTheme, THEMES, type Theme, useTheme } from "../app/theme.js";
import { groupByDay, matches } from "./groups.js";
import { SessionRow } from "./session_row.js";
import styles from "./sidebar.module.css";
import { unreadCount, useSeen } from "./unread.js";
import { useSessionList } from "./use_session_list.js";

/** So near the end of the list, in px, more is loaded. */
const NEAR = 400;

interface SidebarProps {
  readonly route: Route;
  /** Called when the reader went somewhere: a sheet closes then. */
  readonly onGo: () => void;
}

export function Sidebar({ route, onGo }: SidebarProps) {
  const [isArchive, setArchive] = useState(false);
  const shell = useShell();
  return (
    <div className={styles.sidebar}>
      <div className={styles.top}>
        <span className={styles.name}>
          <Mark />
          midstream
        </span>
        {shell.isPhone ? (
          <button type="button" className={controls.icon} onClick={onGo} aria-label="Close the list of chats">
            <X aria-hidden />
          </button>
        ) : (
          <button
            type="button"
            className={styles.commands}
            onClick={shell.openPalette}
            aria-label={`Commands, ${commandKey()}K`}
            title="Commands"
          >
            <kbd>{commandKey()}K</kbd>
          </button>
        )}
      </div>
      <Link className={styles.new} to="/" isCurrent={route.kind === "new"} onGo={onGo}>
        <SquarePen aria-hidden />
        New chat
      </Link>
      <Chats key={String(isArchive)} route={route} onGo={onGo} isArchive={isArchive} />
      <div className={styles.foot}>
        <button
          type="button"
          className={controls.plain}
          aria-pressed={isArchive}
          onClick={() => setArchive(!isArchive)}
        >
          {isArchive ? <ArrowLeft aria-hidden /> : <Archive aria-hidden />}
          {isArchive ? "All chats" : "Archived"}
        </button>
        <span>
          <ReaderMenu />
          <ThemeMenu />
        </span>
      </div>
    </div>
  );
}

/** Three lines; the middle one goes on. */
function Mark() {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      aria-hidden
    >
      <path d="M5.5 3.5h5M5.5 12.5h5" opacity="0.45" strokeLinecap="round" />
      <path d="M2 8h12" strokeLinecap="round" />
    </svg>
  );
}

interface ChatsProps extends SidebarProps {
  readonly isArchive: boolean;
}

function Chats({ route, onGo, isArchive }: ChatsProps) {
  const { sessions, isKnown, hasMore, loadMore } = useSessionList(isArchive);
  const [search, setSearch] = useState("");
  const sought = useDeferredValue(search.trim());
  const found = useMemo(
    () => (sought ? sessions.filter((session) => matches(session, sought)) : sessions),
    [sessions, sought],
  );
  // what is looked for may lie further down: read on until it is found or the list ends
  const readsOn = Boolean(sought) && hasMore && found.length < 20;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each page that came lets the next be asked for
  useEffect(() => {
    if (readsOn) {
      loadMore();
    }
  }, [readsOn, sessions]);
  const onScroll = (event: UIEvent<HTMLElement>) => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    if (hasMore && scrollHeight - scrollTop - clientHeight < NEAR) {
      loadMore();
    }
  };
  return (
    <>
      <label className={styles.search}>
        <Search aria-hidden />
        <input
          type="search"
          value={search}
          placeholder="Search titles"
          aria-label={isArchive ? "Search archived chats" : "Search chats"}
          onChange={(event) => setSearch(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && setSearch("")}
        />
      </label>
      <nav className={styles.list} aria-label={isArchive ? "Archived chats" : "Chats"} onScroll={onScroll}>
        <Groups sessions={found} route={route} onGo={onGo} />
        {isKnown && !found.length && !readsOn && (
          <p className={styles.none}>{emptyText(sought, isArchive)}</p>
        )}
        {hasMore && Boolean(found.length) && <p className={styles.none}>Loading more…</p>}
      </nav>
    </>
  );
}

interface GroupsProps extends SidebarProps {
  readonly sessions: readonly SessionInfo[];
}

function Groups({ sessions, route, onGo }: GroupsProps) {
  const seen = useSeen();
  return groupByDay(sessions, Date.now()).map((group) => (
    <section key={group.label} aria-label={group.label}>
      <h2 className={styles.day}>{group.label}</h2>
      <ul className={styles.rows}>
        {group.sessions.map((session) => {
          const isCurrent = route.kind === "chat" && route.sessionId === session.session_id;
          return (
            <SessionRow
              key={session.session_id}
              session={session}
              isCurrent={isCurrent}
              isUnread={!isCurrent && unreadCount(seen, session) > 0}
              onGo={onGo}
            />
          );
        })}
      </ul>
    </section>
  ));
}

function emptyText(sought: string, isArchive: boolean): string {
  if (sought) {
    return `No chat is called “${sought}”.`;
  }
  return isArchive ? "Nothing is archived." : "Your chats will be here.";
}

/** Who the reader is, where the server knows, and how to be nobody again on this browser. */
function ReaderMenu() {
  const reader = useReader();
  if (!reader) {
    return null;
  }
  const { name, forget } = reader;
  const ask = async () => {
    const yes = await confirmed({
      title: "Forget the token?",
      text:
        `What this browser keeps for ${name} is removed, in all tabs: the token, the chats as they were last seen, ` +
        "drafts, and messages that were not sent yet. The server keeps its chats.",
      action: "Forget",
      isDanger: true,
    });
    if (yes) {
      forget();
    }
  };
  return (
    <Menu
      label={`You are ${name}`}
      items={[
        {
          label: "Forget the token",
          hint: "And all that this browser keeps for you",
          icon: <LogOut aria-hidden />,
          isDanger: true,
          onSelect: () => void ask(),
        },
      ]}
      note={`You are ${name}`}
    >
      <UserRound aria-hidden />
    </Menu>
  );
}

const THEME_NAMES: Readonly<Record<Theme, string>> = {
  system: "As the system",
  light: "Light",
  dark: "Dark",
};
const THEME_ICONS = {
  system: <Monitor aria-hidden />,
  light: <Sun aria-hidden />,
  dark: <Moon aria-hidden />,
};

function ThemeMenu() {
  const theme = useTheme();
  return (
    <Menu
      label={`Theme: ${THEME_NAMES[theme].toLowerCase()}`}
      items={THEMES.map((one) => ({
        label: THEME_NAMES[one],
        icon: THEME_ICONS[one],
        isChosen: one === theme,
        onSelect: () => setTheme(one),
      }))}
    >
      {THEME_ICONS[theme]}
    </Menu>
  );
}
