/** Short news at the page's edge, and what screen readers are told. */
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import styles from "./notice.module.css";

interface Notice {
  readonly text: string;
  readonly tone: "plain" | "ok" | "danger";
}

interface State {
  readonly notice: Notice | undefined;
  /** The polite live region: whole events, never tokens. */
  readonly spoken: string;
}

let state: State = { notice: undefined, spoken: "" };
const listeners = new Set<() => void>();

function change(next: Partial<State>): void {
  state = { ...state, ...next };
  for (const listener of listeners) {
    listener();
  }
}

/** Show a notice, and say it. */
export const notify = (notice: Notice): void => change({ notice, spoken: notice.text });

/** Say something to screen readers only. */
export const announce = (spoken: string): void =>
  // a region that gets the same text again says nothing: a trailing space makes it another one
  change({ spoken: spoken === state.spoken ? `${spoken}\u00a0` : spoken });

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
const dismiss = () => change({ notice: undefined });

/** How long a notice stays, in ms; a failure stays until it is closed. */
const STAYS_MS = 6000;

/** Draws both. Put it into the page once. */
export function Notices() {
  const { notice, spoken } = useSyncExternalStore(subscribe, () => state);
  useEffect(() => {
    if (notice && notice.tone !== "danger") {
      const timer = setTimeout(dismiss, STAYS_MS);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [notice]);
  return (
    <>
      <div role="status" aria-live="polite" className="visually-hidden" data-live-region>
        {spoken}
      </div>
      {notice && (
        <section className={styles.notice} data-tone={notice.tone} aria-label="Notice">
          {notice.tone === "ok" && <CircleCheck aria-hidden />}
          {notice.tone === "danger" && <CircleAlert aria-hidden />}
          <span className={styles.text}>{notice.text}</span>
          <button type="button" className={styles.close} onClick={dismiss} aria-label="Close this notice">
            <X aria-hidden />
          </button>
        </section>
      )}
    </>
  );
}
