import { Layers } from "lucide-react";
import type { ContextPart } from "midstream-client";
import { Fold } from "./fold.js";
import { LongText } from "./value_view.js";

/** What the user's program added for the model. */
export function ContextView({ part, messageId }: { readonly part: ContextPart; readonly messageId: string }) {
  return (
    <Fold
      id={`${messageId} ${part.part_id}`}
      tone="plain"
      summary={
        <>
          <Layers aria-hidden />
          <span>Context: {part.tag}</span>
        </>
      }
    >
      {() => <LongText text={part.context} language="" growing={false} />}
    </Fold>
  );
}
