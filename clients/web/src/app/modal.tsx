/** A dialog before which the rest of the page waits. */
import { type ReactNode, useLayoutEffect, useRef } from "react";

interface ModalProps {
  /** What it is called, or the id of the heading that says it. */
  readonly label: string | { readonly id: string };
  readonly className: string | undefined;
  /** Asked for by Esc, and by a click beside it: draw it no more. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** Open while it is drawn. The browser keeps the focus within, and gives it back to where it was. */
export function Modal({ label, className, onClose, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null);
  // it must be closed before it leaves the page, else the browser gives nothing back: so not in `useEffect`
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the dialog; Esc does the same
    <dialog
      ref={ref}
      className={className}
      {...(typeof label === "string" ? { "aria-label": label } : { "aria-labelledby": label.id })}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === event.currentTarget && onClose()}
    >
      {children}
    </dialog>
  );
}
