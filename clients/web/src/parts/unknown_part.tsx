import { CircleHelp } from "lucide-react";
import { Component, type ReactNode } from "react";
import { Fold } from "./fold.js";
import { LongText } from "./value_view.js";

/** A part that this page cannot draw: of a newer protocol, or not of the form that it knows. */
export function UnknownView({ part, id }: { readonly part: object; readonly id: string }) {
  const type = "type" in part && typeof part.type === "string" ? part.type : "part";
  return (
    <Fold
      id={id}
      tone="line"
      summary={
        <>
          <CircleHelp aria-hidden />
          <span>Not supported by this page: {type.slice(0, 64)}</span>
        </>
      }
    >
      {() => <LongText text={JSON.stringify(part, undefined, 2)} language="json" growing={false} />}
    </Fold>
  );
}

interface BoundaryProps {
  readonly part: object;
  readonly id: string;
  readonly children: ReactNode;
}

/** Keeps the page standing where a part cannot be drawn; when the part changes it is tried anew. */
export class PartBoundary extends Component<BoundaryProps, { readonly failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError(): { readonly failed: boolean } {
    return { failed: true };
  }

  override componentDidUpdate(before: BoundaryProps): void {
    if (this.state.failed && before.part !== this.props.part) {
      this.setState({ failed: false });
    }
  }

  override render(): ReactNode {
    const { part, id, children } = this.props;
    return this.state.failed ? <UnknownView part={part} id={id} /> : children;
  }
}
