/** A chat that does not exist yet: it begins with the first message. */
import { ArrowUp } from "lucide-react";
import type { UserPart } from "midstream-client";
import { useClient, useConnection } from "midstream-client/react";
import { useEffect, useRef } from "react";
import { attempt } from "../app/errors.js";
import { giveFirstTitle } from "../app/first_title.js";
import { rememberFresh } from "../app/fresh.js";
import { newId } from "../app/ids.js";
import { useCanWrite } from "../app/rights.js";
import { chatPath, navigate } from "../app/route.js";
import { Composer } from "../composer/composer.js";
import { NEW_CHAT } from "../composer/drafts.js";
import { rememberSent, summaryOf } from "../composer/sent.js";
import { useDraft } from "../composer/use_draft.js";
import { ConnectionLine } from "./connection_line.js";
import { ReadOnly } from "./conversation.js";
import { ListButton } from "./list_button.js";
import styles from "./new_chat.module.css";

/** What the demo agent understands, and any other may be asked. */
const EXAMPLES = [
  { text: "Tell me a long story", hint: "Streams in chapters; add to it, or stop it" },
  { text: "Take my order for a pizza", hint: "Asks you, and waits for your answers" },
  { text: "Roll the dice and count these words", hint: "Uses two tools before your eyes" },
  { text: "Delete something, if I approve", hint: "Does nothing until somebody allows it" },
] as const;

export function NewChat() {
  const client = useClient();
  const { state } = useConnection();
  const canWrite = useCanWrite();
  const [text, setText] = useDraft(NEW_CHAT);
  useEffect(() => {
    document.title = "New chat · midstream";
  }, []);
  const isBeginning = useRef(false);
  const begin = async (parts: readonly UserPart[]) => {
    isBeginning.current = true;
    const sessionId = newId("chat");
    const messageId = newId("msg");
    rememberFresh(sessionId, summaryOf(parts));
    rememberSent(messageId, parts);
    const session = client.open(sessionId, { create: true });
    const handle = await attempt("send the message", () => session.prompt(parts, { messageId }));
    if (handle) {
      void giveFirstTitle(session);
      navigate(chatPath(sessionId));
    } else {
      isBeginning.current = false;
    }
    return handle !== undefined;
  };
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <ListButton />
      </header>
      <ConnectionLine />
      <div className={styles.middle}>
        <div className={styles.column}>
          <h1 className={styles.title}>Where shall we begin?</h1>
          {canWrite ? (
            <Composer
              text={text}
              onText={setText}
              onSend={begin}
              isOffline={state === "offline"}
              placeholder="Write a message"
              autoFocus={matchMedia("(hover: hover)").matches}
            />
          ) : (
            <ReadOnly />
          )}
          {canWrite && (
            <ul className={styles.examples} aria-label="Examples">
              {EXAMPLES.map((example) => (
                <li key={example.text}>
                  <button
                    type="button"
                    className={styles.example}
                    // a double click begins one chat
                    onClick={() => isBeginning.current || void begin([{ type: "text", text: example.text }])}
                  >
                    <span>
                      {example.text}
                      <small>{example.hint}</small>
                    </span>
                    <ArrowUp aria-hidden />
                  </button>
                </li>
              ))}
            </ul>
          )}
        </div>
      </div>
    </div>
  );
}
