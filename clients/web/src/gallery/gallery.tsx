/** All parts on one page, for eyes. Only for development: `npm run dev`, then `/gallery.html`. */
import type { InteractionPart } from "midstream-client";
import { StrictMode, useMemo } from "react";
import { createRoot } from "react-dom/client";
import { MessageParts } from "../parts/message_parts.js";
import { type PartSession, PartSurroundings, type Surroundings } from "../parts/surroundings.js";
import "../styles/tokens.css";
import "../styles/base.css";
import styles from "./gallery.module.css";
import { samples } from "./samples.js";

const { theme = "" } = Object.fromEntries(new URLSearchParams(location.search));
if (theme) {
  document.documentElement.dataset.theme = theme;
}

const late = (): Promise<InteractionPart> =>
  new Promise((_, reject) => {
    const details = { status: "resolved", resolved_by: "ann" };
    setTimeout(() => reject({ code: "interaction_closed", message: "Closed.", details }), 800);
  });
const SESSION: PartSession = { approve: late, deny: late, answer: late };
const SURROUNDINGS: Surroundings = { subject: "me", onRetry: () => undefined };

function Gallery() {
  const all = useMemo(samples, []);
  return (
    <PartSurroundings value={SURROUNDINGS}>
      <main className={styles.gallery}>
        {all.map(([heading, messages]) => (
          <section key={heading} id={heading}>
            <h2>{heading}</h2>
            {messages.map((message) => (
              <div key={message.message_id} className={message.role === "user" ? styles.user : styles.agent}>
                <MessageParts message={message} session={SESSION} />
              </div>
            ))}
          </section>
        ))}
      </main>
    </PartSurroundings>
  );
}

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Gallery />
    </StrictMode>,
  );
}
