import { MessageSquarePlus } from "lucide-react";
import type { InteractionPart, Value } from "midstream-client";
import { type ReactNode, useId } from "react";
import controls from "./buttons.module.css";
import styles from "./interaction.module.css";
import type { PartSession } from "./surroundings.js";
import { useSurroundings } from "./surroundings.js";
import { Countdown } from "./times.js";
import { useAnswer } from "./use_answer.js";
import { forget, useKept } from "./use_kept.js";
import { ValueView } from "./value_view.js";

/** Ask for an approval: what would be done, and two buttons. Any device may answer. */
export function ApprovalCard({
  part,
  session,
  input,
}: {
  readonly part: InteractionPart;
  readonly session: PartSession;
  /** The arguments of the tool that waits. */
  readonly input: Value | undefined;
}) {
  const { subject, canAnswer = true } = useSurroundings();
  const { what, problem, send } = useAnswer(subject);
  const key = `reason ${part.interaction_id}`;
  const [reason, setReason] = useKept<string | undefined>(key, undefined);
  const { title, description, expires_at } = part.request;
  const answer = (name: "approve" | "deny") =>
    send(name, async () => {
      await session[name](part.interaction_id, reason?.trim() || undefined);
      forget(key);
    });
  if (!canAnswer) {
    return (
      <div className={styles.ask}>
        <Asked title={title} description={description} />
        {input === undefined ? null : <ValueView name="Arguments" value={input} />}
        <OnlyReads />
      </div>
    );
  }
  return (
    <div className={styles.ask}>
      <Asked title={title} description={description} />
      {input === undefined ? null : <ValueView name="Arguments" value={input} />}
      {reason === undefined ? null : <Reason value={reason} onChange={setReason} />}
      <div className={styles.buttons}>
        <button
          type="button"
          className={controls.solid}
          aria-disabled={what !== ""}
          onClick={() => answer("approve")}
        >
          {what === "approve" ? "Approving…" : "Approve"}
        </button>
        <button
          type="button"
          className={controls.quiet}
          aria-disabled={what !== ""}
          onClick={() => answer("deny")}
        >
          {what === "deny" ? "Denying…" : "Deny"}
        </button>
        {reason === undefined ? (
          <button type="button" className={controls.bare} onClick={() => setReason("")}>
            <MessageSquarePlus aria-hidden />
            Add a reason
          </button>
        ) : null}
        {expires_at === undefined ? null : (
          <span className={styles.expiry}>
            <Countdown until={expires_at} />
          </span>
        )}
      </div>
      <Problem text={problem} />
    </div>
  );
}

function Reason({ value, onChange }: { readonly value: string; readonly onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div className={styles.reason}>
      <label htmlFor={id}>Reason, for the agent</label>
      <input
        id={id}
        // biome-ignore lint/a11y/noAutofocus: it was asked for just now
        autoFocus
        className={controls.field}
        value={value}
        dir="auto"
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

/** What is asked, in the agent's words. */
export function Asked({
  title,
  description,
}: {
  readonly title: string;
  readonly description: string | undefined;
}): ReactNode {
  return (
    <div>
      <p className={styles.title} dir="auto">
        {title}
      </p>
      {description ? (
        <p className={styles.description} dir="auto">
          {description}
        </p>
      ) : null}
    </div>
  );
}

/** Said where the reader may look, but not answer. */
export const OnlyReads = () => (
  <p className={styles.description}>Somebody else has to answer this: your token lets you read only.</p>
);

/** Why an answer was not taken. */
export const Problem = ({ text }: { readonly text: string }) =>
  text ? (
    <p className={styles.problem} role="alert">
      {text}
    </p>
  ) : null;
