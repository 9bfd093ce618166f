import { memo } from "react";

/** Draw Markdown that may still grow. */
export const Markdown = memo(function Markdown({
  text,
  streaming,
}: {
  readonly text: string;
  readonly streaming: boolean;
}) {
  return (
    <div dir="auto" style={{ whiteSpace: "pre-wrap" }} data-streaming={streaming || undefined}>
      {text}
    </div>
  );
});
