/** What the screen is like. */
import { useSyncExternalStore } from "react";

/** A phone: the list of chats is a sheet. */
export const PHONE = "(max-width: 719px)";

/** Whether a media query matches, now and after each change. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
    () => false,
  );
}
