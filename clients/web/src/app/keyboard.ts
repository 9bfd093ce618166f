/** What keys mean. Pure: the event is only looked at. */

/** What is looked at of a key press. */
export interface Key {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  /** A word is being composed (IME): keys are the input method's. */
  readonly isComposing: boolean;
}

type PageCommand = "palette" | "focus-composer";
type WritingCommand = "send" | "leave";

/** What a key does wherever the focus is; `isWriting`: it is in a field that takes text. */
export function pageCommand(key: Key, isWriting: boolean): PageCommand | undefined {
  if (key.isComposing || key.altKey) {
    return undefined;
  }
  const withCommand = key.ctrlKey || key.metaKey;
  if (withCommand && !key.shiftKey && key.key.toLowerCase() === "k") {
    return "palette";
  }
  return key.key === "/" && !withCommand && !isWriting ? "focus-composer" : undefined;
}

/** What a key does in a field of several lines: Enter sends, Shift+Enter is a new line, Esc leaves. */
export function writingCommand(key: Key): WritingCommand | undefined {
  if (key.isComposing) {
    return undefined;
  }
  if (key.key === "Enter" && !key.shiftKey && !key.altKey) {
    return "send";
  }
  return key.key === "Escape" ? "leave" : undefined;
}

/** Whether the focus is where typed characters go. */
export function takesText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** How the palette's key is written on this machine. */
export const commandKey = (): string => (/Mac|iP(hone|ad)/.test(navigator.userAgent) ? "⌘" : "Ctrl ");
