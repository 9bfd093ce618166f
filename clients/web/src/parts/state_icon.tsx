import { Ban, Check, CircleAlert, CircleDashed, CircleSlash, Hand, LoaderCircle } from "lucide-react";
import styles from "./state_icon.module.css";

/** States of tools and actions, and two kinds of failure that are nobody's fault. */
export type IconState =
  | "input-streaming"
  | "ready"
  | "waiting-user"
  | "running"
  | "completed"
  | "failed"
  | "denied"
  | "cut-off";

/** A state as a picture; the words for it stand beside. */
export function StateIcon({ state }: { readonly state: IconState }) {
  switch (state) {
    case "input-streaming":
    case "running":
      return <LoaderCircle className={styles.turning} aria-hidden />;
    case "waiting-user":
      return <Hand className={styles.waiting} aria-hidden />;
    case "completed":
      return <Check className={styles.done} aria-hidden />;
    case "failed":
      return <CircleAlert className={styles.failed} aria-hidden />;
    case "denied":
      return <Ban className={styles.quiet} aria-hidden />;
    case "cut-off":
      return <CircleSlash className={styles.quiet} aria-hidden />;
    default:
      return <CircleDashed className={styles.quiet} aria-hidden />;
  }
}
