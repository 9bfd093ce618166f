/** The text of a place to write in, kept on each keystroke. */
import { useCallback, useState } from "react";
import { draftOf, keepDraft } from "./drafts.js";

/** The draft, and how it is changed; give the component a `key` of the place. */
export function useDraft(place: string): [string, (change: string | ((text: string) => string)) => void] {
  const [text, setText] = useState(() => draftOf(place));
  const change = useCallback(
    (next: string | ((text: string) => string)) => {
      // what is kept is the truth: a change that comes later than the next keystroke must not undo it
      const changed = typeof next === "string" ? next : next(draftOf(place));
      keepDraft(place, changed);
      setText(changed);
    },
    [place],
  );
  return [text, change];
}
