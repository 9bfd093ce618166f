/** Catches what a part of the page throws: the rest stays, and there is a way back. */
import { Component, type ReactNode } from "react";
import { Blank } from "./blank.js";
import controls from "./controls.module.css";

interface Props {
  readonly children: ReactNode;
  /** Another value tries again: the chat that is shown, say. */
  readonly of?: string | number;
  /** Say only this, where a small part of the page is missing. */
  readonly small?: string;
}

export class ErrorBoundary extends Component<Props, { readonly error: Error | undefined }> {
  override state: { readonly error: Error | undefined } = { error: undefined };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error && before.of !== this.props.of) {
      this.setState({ error: undefined });
    }
  }

  override render() {
    const { error } = this.state;
    if (!error) {
      return this.props.children;
    }
    if (this.props.small) {
      return <p role="alert">{this.props.small}</p>;
    }
    return (
      <Blank
        title="This page made a mistake"
        text={`Nothing is lost: your chats are on the server, and drafts are kept. It said: ${error.message}`}
      >
        <button type="button" className={controls.solid} onClick={() => this.setState({ error: undefined })}>
          Try again
        </button>
        <button type="button" className={controls.quiet} onClick={() => location.assign("/")}>
          Go to a new chat
        </button>
      </Blank>
    );
  }
}
