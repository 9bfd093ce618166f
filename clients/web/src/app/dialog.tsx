/** Questions that must be answered before something is done, in the browser's own modal dialog. */
import { type ReactNode, useId, useSyncExternalStore } from "react";
import { classNames } from "./class_names.js";
import controls from "./controls.module.css";
import styles from "./dialog.module.css";
import { Modal } from "./modal.js";

interface ConfirmQuestion {
  readonly title: string;
  readonly text: string;
  /** What the button says that does it. */
  readonly action: string;
  readonly isDanger?: boolean;
}

interface Asked extends ConfirmQuestion {
  answer(yes: boolean): void;
}

let asked: Asked | undefined;
const listeners = new Set<() => void>();

/** Ask the reader; resolves to whether the answer is yes. Esc means no. */
export function confirmed(question: ConfirmQuestion): Promise<boolean> {
  asked?.answer(false);
  return new Promise((resolve) => {
    show({
      ...question,
      answer: (yes) => {
        show(undefined);
        resolve(yes);
      },
    });
  });
}

function show(next: Asked | undefined): void {
  asked = next;
  for (const listener of listeners) {
    listener();
  }
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Draws the question that is asked. Put it into the page once. */
export function ConfirmDialog() {
  const question = useSyncExternalStore(subscribe, () => asked);
  if (!question) {
    return null;
  }
  return (
    <Dialog title={question.title} onClose={() => question.answer(false)}>
      <p className={styles.text}>{question.text}</p>
      <div className={styles.buttons}>
        <button type="button" className={controls.quiet} onClick={() => question.answer(false)}>
          Cancel
        </button>
        <button
          type="button"
          className={classNames(controls.solid, question.isDanger && controls.danger)}
          onClick={() => question.answer(true)}
        >
          {question.action}
        </button>
      </div>
    </Dialog>
  );
}

/** A modal dialog with a title. */
function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const titleId = useId();
  return (
    <Modal label={{ id: titleId }} className={styles.dialog} onClose={props.onClose}>
      <div className={styles.inside}>
        <h2 id={titleId} className={styles.title}>
          {props.title}
        </h2>
        {props.children}
      </div>
    </Modal>
  );
}
