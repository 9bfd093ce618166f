/** What is true of the connection, said only while there is none. */
import { useConnection } from "midstream-client/react";
import { useEffect, useRef } from "react";
import { announce } from "../app/notice.js";
import { showDialog } from "../app/token_request.js";
import styles from "./connection_line.module.css";
import { connectionWords } from "./connection_words.js";

const ACTIONS = {
  reload: { label: "Reload", run: () => location.reload() },
  token: { label: "Give a token", run: () => showDialog(true) },
} as const;

export function ConnectionLine() {
  const connection = useConnection();
  const words = connectionWords(connection);
  const isFirst = connection.state === "connecting" && connection.problem === undefined;
  const wasLive = useRef(false);
  useEffect(() => {
    if (connection.state === "live") {
      if (wasLive.current) {
        announce("Connected again.");
      }
      wasLive.current = true;
    } else if (connection.state === "offline" && wasLive.current) {
      announce("The connection is lost.");
    }
  }, [connection.state]);
  if (!words) {
    return null;
  }
  return (
    <div
      className={styles.line}
      data-state={connection.state}
      data-first={isFirst || undefined}
      data-connection
    >
      <span className={styles.dot} aria-hidden />
      <p className={styles.text}>
        <strong>{words.what}</strong> {words.next}
      </p>
      {words.action && (
        <button type="button" className={styles.reload} onClick={ACTIONS[words.action].run}>
          {ACTIONS[words.action].label}
        </button>
      )}
    </div>
  );
}
