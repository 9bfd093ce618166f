/** What any part of the page can ask of the frame around it. */
import { createContext, useContext } from "react";

export interface Shell {
  /** Open the list of chats, where it is a sheet. */
  openList(): void;
  openPalette(): void;
  readonly isPhone: boolean;
}

export const ShellContext = createContext<Shell>({
  openList: () => undefined,
  openPalette: () => undefined,
  isPhone: false,
});

export const useShell = (): Shell => useContext(ShellContext);

const COMPOSER = "composer-text";
export const composerId = COMPOSER;

/** Put the cursor where messages are written. */
export const focusComposer = (): void => document.getElementById(COMPOSER)?.focus();
