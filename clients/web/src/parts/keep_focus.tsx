import { Component, createRef, type ReactNode } from "react";

interface Props {
  readonly className?: string | undefined;
  readonly label?: string | undefined;
  readonly children: ReactNode;
}

/** A group that keeps the keyboard's place: if what had the focus is drawn no more, the group itself has it. */
export class KeepFocus extends Component<Props> {
  readonly #element = createRef<HTMLDivElement>();

  override getSnapshotBeforeUpdate(): boolean {
    return this.#element.current?.contains(document.activeElement) ?? false;
  }

  override componentDidUpdate(_props: Props, _state: unknown, focused: boolean): void {
    const element = this.#element.current;
    if (focused && element && !element.contains(document.activeElement)) {
      element.focus({ preventScroll: true });
    }
  }

  override render(): ReactNode {
    const { className, label, children } = this.props;
    return (
      // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form
      <div ref={this.#element} className={className} role="group" aria-label={label} tabIndex={-1}>
        {children}
      </div>
    );
  }
}
