/** A page that has nothing to show, says why, and what can be done. */
import type { ReactNode } from "react";
import styles from "./blank.module.css";

export function Blank(props: {
  readonly title: string;
  readonly text: string;
  readonly children: ReactNode;
}) {
  return (
    <div className={styles.blank}>
      <div className={styles.inside}>
        <h1 className={styles.title}>{props.title}</h1>
        <p className={styles.text}>{props.text}</p>
        <div className={styles.buttons}>{props.children}</div>
      </div>
    </div>
  );
}
