/** A page that draws whatever text it is given, growing and whole. */
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { Markdown } from "../../../src/markdown/markdown.js";

declare global {
  interface Window {
    draw(text: string, streaming: boolean): string;
  }
}

const root = createRoot(document.getElementById("root") as HTMLElement);
window.draw = (text, streaming) => {
  flushSync(() => root.render(<Markdown text={text} streaming={streaming} />));
  return document.getElementById("root")?.innerHTML ?? "";
};
