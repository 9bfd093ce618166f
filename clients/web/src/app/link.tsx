/** A link to a place of this page. */
import type { ReactNode } from "react";
import { navigate } from "./route.js";

/** Goes there without loading the page anew; with a key held, and by other buttons, it is the browser's own. */
export function Link(props: {
  readonly to: string;
  readonly children: ReactNode;
  readonly className?: string | undefined;
  readonly isCurrent?: boolean;
  readonly onGo?: () => void;
  readonly onDoubleClick?: () => void;
}) {
  return (
    <a
      className={props.className}
      href={props.to}
      aria-current={props.isCurrent ? "page" : undefined}
      onDoubleClick={props.onDoubleClick}
      onClick={(event) => {
        if (!event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey) {
          event.preventDefault();
          navigate(props.to);
          props.onGo?.();
        }
      }}
    >
      {props.children}
    </a>
  );
}
