import type { InteractionPart, Value } from "midstream-client";
import { ApprovalCard } from "./approval_card.js";
import styles from "./interaction.module.css";
import { KeepFocus } from "./keep_focus.js";
import { OutcomeLine } from "./outcome_line.js";
import { Answers, QuestionCard } from "./question_card.js";
import type { PartSession } from "./surroundings.js";

interface InteractionProps {
  readonly part: InteractionPart;
  readonly session: PartSession;
  /** The arguments of the tool that waits for it. */
  readonly input?: Value | undefined;
}

/** A question to a person while it is pending, and what became of it. */
export function Interaction({ part, session, input }: InteractionProps) {
  if (part.status !== "pending") {
    return (
      <div className={styles.closed}>
        {part.interaction_type === "question" && part.status === "resolved" ? <Answers part={part} /> : null}
        <OutcomeLine part={part} />
      </div>
    );
  }
  return part.interaction_type === "question" ? (
    <QuestionCard part={part} session={session} />
  ) : (
    <ApprovalCard part={part} session={session} input={input} />
  );
}

/** A question that stands for itself. */
export function InteractionView({ part, session }: InteractionProps) {
  const pending = part.status === "pending";
  return (
    <KeepFocus className={pending ? styles.pending : styles.card} label={part.request.title}>
      {pending ? null : <p className={styles.asked}>{part.request.title}</p>}
      <Interaction part={part} session={session} />
    </KeepFocus>
  );
}
