/** The worker that colours code, so that the page never waits for it. */
import { coloursOf } from "./colours.js";
import { hljs } from "./languages.js";

/** What it is asked. */
export interface ColourRequest {
  readonly id: number;
  readonly code: string;
  readonly language: string;
}

/** What it answers. */
export interface ColourAnswer {
  readonly id: number;
  readonly chunks: readonly string[] | undefined;
}

addEventListener("message", ({ data }: MessageEvent<ColourRequest>) => {
  let chunks: string[] | undefined;
  try {
    chunks = coloursOf(hljs, data.code, data.language);
  } catch {
    chunks = undefined; // the code stays plain
  }
  postMessage({ id: data.id, chunks } satisfies ColourAnswer);
});
