import type { InteractionPart, ToolPart } from "midstream-client";
import { duration } from "./amounts.js";
import { Fold } from "./fold.js";
import { Interaction } from "./interaction_part.js";
import { KeepFocus } from "./keep_focus.js";
import { type IconState, StateIcon } from "./state_icon.js";
import type { PartSession } from "./surroundings.js";
import styles from "./tool.module.css";
import { useObserved } from "./use_observed.js";
import { LongText, summaryOf, ValueView } from "./value_view.js";
import { isCutOff, isDenied, toolError } from "./words.js";

interface ToolProps {
  readonly part: ToolPart;
  readonly messageId: string;
  /** The questions about this call. */
  readonly asked: readonly InteractionPart[];
  readonly session: PartSession;
}

/** One tool call in a row that unfolds; what is asked about it stands below. */
export function ToolView({ part, messageId, asked, session }: ToolProps) {
  const id = `${messageId} ${part.part_id}`;
  const pending = asked.some(({ status }) => status === "pending");
  return (
    <KeepFocus className={pending ? styles.asking : styles.tool}>
      <Fold id={id} tone="row" summary={<Row part={part} id={id} asked={asked} />}>
        {() => <Details part={part} />}
      </Fold>
      {asked.length > 0 ? (
        <div className={pending ? styles.asked : styles.answered}>
          {asked.map((interaction) => (
            <Interaction
              key={interaction.interaction_id}
              part={interaction}
              session={session}
              input={part.input}
            />
          ))}
        </div>
      ) : null}
    </KeepFocus>
  );
}

function Row({
  part,
  id,
  asked,
}: {
  readonly part: ToolPart;
  readonly id: string;
  readonly asked: readonly InteractionPart[];
}) {
  const ran = useObserved(`run ${id}`, part.state === "running", part.output === undefined);
  const denied = isDenied(part, asked);
  const cutOff = part.state === "failed" && isCutOff(part.error);
  const icon: IconState = denied ? "denied" : cutOff ? "cut-off" : part.state;
  const summary =
    part.input === undefined ? (part.input_text ?? part.raw_input ?? "") : summaryOf(part.input);
  return (
    <>
      <StateIcon state={icon} />
      <span className={styles.name}>
        {part.title ? <span className={styles.title}>{part.title}</span> : null}
        <span className={styles.call}>{part.tool_name}</span>
      </span>
      <span className={styles.summary} dir="auto">
        {summary}
      </span>
      <span className={styles.state}>{stateWords(part, denied, cutOff, ran)}</span>
    </>
  );
}

function stateWords(part: ToolPart, denied: boolean, cutOff: boolean, ran: number | undefined): string {
  switch (part.state) {
    case "input-streaming":
      return "Preparing…";
    case "ready":
      return "Ready";
    case "waiting-user":
      return "Waiting for an answer";
    case "running":
      return ran === undefined || ran < 1000 ? "Running…" : `Running ${duration(ran)}`;
    case "completed":
      return ran !== undefined && ran >= 500 ? `Done · ${duration(ran)}` : "Done";
    default:
      return denied ? "Denied" : cutOff ? "Cut off" : "Failed";
  }
}

function Details({ part }: { readonly part: ToolPart }) {
  return (
    <>
      <Input part={part} />
      {part.output === undefined ? null : (
        <ValueView name={part.preliminary ? "Result so far" : "Result"} value={part.output} />
      )}
      {part.error === undefined ? null : (
        <p className={styles.error} dir="auto">
          {toolError(part.error)}
        </p>
      )}
      {part.provider_executed ? <p className={styles.note}>Run by the model's provider.</p> : null}
    </>
  );
}

function Input({ part }: { readonly part: ToolPart }) {
  if (part.input !== undefined) {
    return <ValueView name="Arguments" value={part.input} />;
  }
  const text = part.raw_input ?? part.input_text;
  if (!text) {
    return <p className={styles.note}>No arguments{part.state === "input-streaming" ? " yet" : ""}.</p>;
  }
  return (
    <div className={styles.live}>
      <span className={styles.label}>
        {part.raw_input === undefined ? "Arguments" : "Arguments that could not be read"}
      </span>
      <LongText text={text} language="" growing={part.state === "input-streaming"} />
    </div>
  );
}
