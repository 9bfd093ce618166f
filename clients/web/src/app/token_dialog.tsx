/** Asks the reader for a token, where the server wants one. */
import { useClient, useConnection } from "midstream-client/react";
import { type FormEvent, useId, useRef, useState } from "react";
import { serverUrl } from "./client.js";
import controls from "./controls.module.css";
import dialog from "./dialog.module.css";
import { Modal } from "./modal.js";
import { announce } from "./notice.js";
import styles from "./token_dialog.module.css";
import { showDialog, takeToken, useAsking } from "./token_request.js";

/** Put it into the page once. */
export function TokenDialog() {
  return useAsking().isOpen ? <Dialog /> : null;
}

const WORDS = {
  unauthorized: {
    title: "This server asks who you are",
    text: "Paste the token that you were given. If you have none, ask whoever runs this server.",
  },
  token_expired: {
    title: "Your token has expired",
    text: "Paste another one, and you go on where you were. What you wrote meanwhile is kept, and sent then.",
  },
} as const;

function Dialog() {
  const client = useClient();
  const { refusal = "unauthorized" } = useConnection();
  const { isAsked } = useAsking();
  const ids = { title: useId(), text: useId(), problem: useId() };
  const field = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const { title, text } = WORDS[refusal];
  const onSubmit = async (event: FormEvent) => {
    event.preventDefault();
    if (isBusy) {
      return;
    }
    setBusy(true);
    setProblem("");
    const isWaitedFor = isAsked && client.state !== "closed";
    const taken = await takeToken(serverUrl(), field.current?.value ?? "", isWaitedFor);
    if (taken === "reload") {
      location.reload();
    } else if (taken === "goes on") {
      announce("The server took the token.");
    } else {
      setBusy(false);
      setProblem(taken.problem);
      field.current?.focus();
      field.current?.select();
    }
  };
  return (
    <Modal label={{ id: ids.title }} className={dialog.dialog} onClose={() => showDialog(false)}>
      <form className={dialog.inside} onSubmit={onSubmit} noValidate>
        <h2 id={ids.title} className={dialog.title}>
          {title}
        </h2>
        <p id={ids.text} className={dialog.text}>
          {text} It is kept in this tab only.
        </p>
        <label className={styles.label}>
          Token
          <input
            ref={field}
            className={styles.field}
            name="token"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            aria-describedby={problem ? `${ids.problem} ${ids.text}` : ids.text}
            aria-invalid={problem !== ""}
          />
        </label>
        {problem && (
          <p id={ids.problem} className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        <div className={dialog.buttons}>
          <button type="button" className={controls.quiet} onClick={() => showDialog(false)}>
            Not now
          </button>
          <button type="submit" className={controls.solid} aria-disabled={isBusy}>
            {isBusy ? "Asking the server…" : "Use this token"}
          </button>
        </div>
      </form>
    </Modal>
  );
}
