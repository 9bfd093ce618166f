/** What opens the list of chats on a phone, and tells that something in it waits for the reader. */
import { Menu } from "lucide-react";
import controls from "../app/controls.module.css";
import { useRoute } from "../app/route.js";
import { useShell } from "../app/shell.js";
import { unreadCount, useSeen } from "../sidebar/unread.js";
import { useSessionList } from "../sidebar/use_session_list.js";
import styles from "./list_button.module.css";

export function ListButton() {
  return useShell().isPhone ? <PhoneListButton /> : null;
}

function PhoneListButton() {
  const shell = useShell();
  const route = useRoute();
  const seen = useSeen();
  const { sessions } = useSessionList();
  const here = route.kind === "chat" ? route.sessionId : undefined;
  const isNews = sessions.some(
    (one) => one.session_id !== here && (one.pending_interactions || unreadCount(seen, one) > 0),
  );
  return (
    <button
      type="button"
      className={`${controls.icon} ${styles.button}`}
      onClick={shell.openList}
      aria-label={isNews ? "Open the list of chats: there is news" : "Open the list of chats"}
    >
      <Menu aria-hidden />
      {isNews && <span className={styles.dot} />}
    </button>
  );
}
