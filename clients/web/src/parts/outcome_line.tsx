import { Ban, Check, CircleSlash, Clock3, ShieldCheck } from "lucide-react";
import type { InteractionPart } from "midstream-client";
import styles from "./interaction.module.css";
import { useSurroundings } from "./surroundings.js";
import { Moment } from "./times.js";
import { outcome } from "./words.js";

function Icon({ part }: { readonly part: InteractionPart }) {
  if (part.status === "expired") {
    return <Clock3 aria-hidden />;
  }
  if (part.status === "cancelled") {
    return <CircleSlash aria-hidden />;
  }
  if (part.response?.kind === "approval" && part.response.decision === "denied") {
    return <Ban aria-hidden />;
  }
  return part.approval_mode ? <ShieldCheck aria-hidden /> : <Check className={styles.done} aria-hidden />;
}

/** What became of a question, by whom, and when: one line. */
export function OutcomeLine({ part }: { readonly part: InteractionPart }) {
  const { subject } = useSurroundings();
  const reason = part.response?.kind === "approval" ? part.response.reason : undefined;
  return (
    <p className={styles.outcome}>
      <Icon part={part} />
      <span>
        {outcome(part, subject)}
        {reason ? <span dir="auto"> “{reason}”</span> : null}
        {part.resolved_at === undefined ? null : (
          <>
            {" · "}
            <Moment at={part.resolved_at} />
          </>
        )}
      </span>
    </p>
  );
}
