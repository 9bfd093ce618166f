/** Light, dark, or what the system says; the choice is kept and shared by the tabs. */
import { useSyncExternalStore } from "react";
import { kept } from "./kept.js";

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];

const theme = kept<Theme>(
  "theme",
  (stored) => (stored === "light" || stored === "dark" ? stored : "system"),
  true,
);

export const setTheme = theme.set;

export const useTheme = (): Theme => useSyncExternalStore(theme.subscribe, theme.get, theme.get);

/** Show the chosen theme, now and after each change; call it before anything is drawn. */
export function applyTheme(root: HTMLElement = document.documentElement): () => void {
  const apply = () => {
    const chosen = theme.get();
    if (chosen === "system") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = chosen;
    }
  };
  apply();
  return theme.subscribe(apply);
}
