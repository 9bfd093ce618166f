/** The page: the list of chats beside the chat that the address names. */
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ConfirmDialog } from "../app/dialog.js";
import { ErrorBoundary } from "../app/error_boundary.js";
import { attempt } from "../app/errors.js";
import { pageCommand, takesText } from "../app/keyboard.js";
import { PHONE, useMedia } from "../app/media.js";
import { Modal } from "../app/modal.js";
import { Notices } from "../app/notice.js";
import { TokenDialog } from "../app/token_dialog.js";
import { Conversation } from "../conversation/conversation.js";
import { NewChat } from "../conversation/new_chat.js";
import { keyOfChat } from "../conversation/renaming.js";
import type { Lab } from "../lab/lab.js";
import { Sidebar } from "../sidebar/sidebar.js";
import styles from "./app.module.css";
import type { Palette } from "./palette.js";
import "./palette.module.css"; // with the page: a style that once failed to load is not asked for again
import { type Route, useRoute } from "../app/route.js";
import { focusComposer, type Shell, ShellContext } from "../app/shell.js";

const LabDock = lazy(() => import("../lab/dock.js"));

export function App({ lab }: { readonly lab?: Lab | undefined }) {
  const route = useRoute();
  const isPhone = useMedia(PHONE);
  const [isListOpen, setListOpen] = useState(false);
  const { OpenPalette, openPalette, closePalette } = usePalette();
  const shell = useMemo(
    (): Shell => ({ openList: () => setListOpen(true), openPalette, isPhone }),
    [isPhone, openPalette],
  );
  usePageKeys(openPalette);
  const chat = route.kind === "chat" ? route.sessionId : "";
  return (
    <ShellContext value={shell}>
      <a className={styles.skip} href="#main">
        Skip to the chat
      </a>
      <div className={styles.layout}>
        {isPhone ? (
          isListOpen && <ListSheet route={route} onClose={() => setListOpen(false)} />
        ) : (
          <aside className={styles.side} aria-label="Chats">
            <Sidebar route={route} onGo={() => undefined} />
          </aside>
        )}
        <main id="main" tabIndex={-1} className={styles.main}>
          <ErrorBoundary of={chat}>
            {route.kind === "chat" ? <Conversation key={keyOfChat(chat)} sessionId={chat} /> : <NewChat />}
          </ErrorBoundary>
          {lab && (
            <ErrorBoundary small="The link lab could not be shown. Reload the page to try again.">
              <Suspense>
                <LabDock lab={lab} sessionId={chat} />
              </Suspense>
            </ErrorBoundary>
          )}
        </main>
      </div>
      {OpenPalette && <OpenPalette route={route} onClose={closePalette} />}
      <ConfirmDialog />
      <TokenDialog />
      <Notices />
    </ShellContext>
  );
}

/** The palette is loaded when it is first asked for. Where that fails the page goes on, and tries again when asked. */
function usePalette() {
  const known = useRef<typeof Palette>(undefined);
  const [OpenPalette, setPalette] = useState<typeof Palette>();
  const openPalette = useCallback(async () => {
    // at once where it is known: what is typed after the key is meant for it
    known.current ??= (await attempt("open the commands", () => import("./palette.js")))?.Palette;
    setPalette(() => known.current);
  }, []);
  const closePalette = useCallback(() => setPalette(undefined), []);
  return { OpenPalette, openPalette, closePalette };
}

/** The list of chats on a phone: a sheet from the left. */
function ListSheet({ route, onClose }: { readonly route: Route; readonly onClose: () => void }) {
  return (
    <Modal label="Chats" className={styles.sheet} onClose={onClose}>
      <Sidebar route={route} onGo={onClose} />
    </Modal>
  );
}

/** The keys that mean something wherever the focus is. */
function usePageKeys(openPalette: () => void): void {
  const open = useRef(openPalette);
  open.current = openPalette;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const command = pageCommand(event, takesText(event.target));
      if (!command || document.querySelector("dialog[open]")) {
        return;
      }
      event.preventDefault();
      if (command === "palette") {
        open.current();
      } else {
        focusComposer();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
