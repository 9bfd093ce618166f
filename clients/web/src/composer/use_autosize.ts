/** A text field that is as high as its text, also where the browser cannot do that by itself (`field-sizing`). */
import { type RefObject, useLayoutEffect, useRef } from "react";

/** Returns the ref of the field, whose text this is. Its greatest height is its style's. */
export function useAutosize(text: string): RefObject<HTMLTextAreaElement | null> {
  const ref = useRef<HTMLTextAreaElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text has another height
  useLayoutEffect(() => {
    const field = ref.current;
    if (field && !globalThis.CSS?.supports("field-sizing", "content")) {
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight}px`;
    }
  }, [text]);
  return ref;
}
