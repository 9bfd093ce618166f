/** A button that opens a menu, in the browser's top layer: it is never cut off, and closes by itself. */
import { Check } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from "react";
import controls from "./controls.module.css";
import styles from "./menu.module.css";

/** One thing that a menu does. */
interface MenuItem {
  readonly label: string;
  readonly icon?: ReactNode;
  /** A line below the label. */
  readonly hint?: string;
  /** One of several: whether it is the one. */
  readonly isChosen?: boolean;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  readonly onSelect: () => void;
}

interface MenuProps {
  /** What the button is called. */
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly children: ReactNode;
  readonly className?: string | undefined;
  /** What stands over the items. */
  readonly note?: string | undefined;
}

const MARGIN = 8;

/** A menu button. Arrow keys, Home and End move; Esc and a click beside it close. */
export function Menu({ label, items, children, className, note }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  // when the items are there: an empty menu has no size, and nothing to focus
  useLayoutEffect(() => {
    if (isOpen && button.current && menu.current) {
      place(menu.current, button.current.getBoundingClientRect());
      entries(menu.current)[0]?.focus();
    }
  }, [isOpen]);
  const close = () => menu.current?.hidePopover?.();

  return (
    <>
      <button
        ref={button}
        type="button"
        className={className ?? controls.icon}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
        title={label}
      >
        {children}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        className={styles.menu}
        onToggle={(event) => setOpen(event.newState === "open")}
        onKeyDown={(event) => moveFocus(event, menu.current)}
      >
        {isOpen && note && <p className={styles.note}>{note}</p>}
        {isOpen &&
          items.map((item) => (
            <button
              key={item.label}
              type="button"
              {...roleOf(item)}
              tabIndex={-1}
              disabled={item.isDisabled}
              className={styles.item}
              data-danger={item.isDanger || undefined}
              onClick={() => {
                close();
                item.onSelect();
              }}
            >
              {item.icon}
              <span className={styles.label}>
                {item.label}
                {item.hint && <small className={styles.hint}>{item.hint}</small>}
              </span>
              {item.isChosen && <Check aria-hidden />}
            </button>
          ))}
      </div>
    </>
  );
}

/** Put the menu below its button, or above it where there is no room; within the window. */
function place(menu: HTMLElement, at: DOMRect): void {
  const { width, height } = menu.getBoundingClientRect();
  const fitsBelow = at.bottom + 4 + height <= innerHeight - MARGIN;
  const left = at.left + width <= innerWidth - MARGIN ? at.left : at.right - width;
  menu.style.top = `${Math.max(MARGIN, fitsBelow ? at.bottom + 4 : at.top - 4 - height)}px`;
  menu.style.left = `${Math.max(MARGIN, left)}px`;
}

const roleOf = ({ isChosen }: MenuItem) =>
  isChosen === undefined
    ? { role: "menuitem" as const }
    : { role: "menuitemradio" as const, "aria-checked": isChosen };

const entries = (menu: HTMLElement): HTMLElement[] => [
  ...menu.querySelectorAll<HTMLElement>("[role^=menuitem]:not(:disabled)"),
];

function moveFocus(event: KeyboardEvent, menu: HTMLElement | null): void {
  const all = menu ? entries(menu) : [];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    all.at(to % all.length)?.focus();
  } else if (event.key === "Tab") {
    menu?.hidePopover?.();
  }
}
