/** A dialog before which the rest of the page waits. */
import { type RefObject, useLayoutEffect, useRef } from "react";

/**
 * Open the dialog of this ref while its component is there, and give the focus back to where it was. It must be
 * closed before it leaves the page, else the browser gives nothing back: so not in `useEffect`.
 */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return ref;
}
