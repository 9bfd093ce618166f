/** Colours for code blocks: asked of a worker, kept, and shown a few lines a frame. */
import { useEffect, useState } from "react";
import type { ColourAnswer, ColourRequest } from "./colour_worker.js";
import { LONGEST } from "./colours.js";

type Chunks = readonly string[];

const PLAIN: Chunks = [];
/** How much code the colours are kept of, in characters. */
const KEPT = 1_000_000;
/** Chunks that are coloured in one frame: some hundred elements. */
const A_FRAME = 2;
/** Code that grows is coloured at most so often, and only while it is short. */
const GROWING_MS = 400;
const GROWING_LONGEST = 16_384;

class Colourer {
  readonly #kept = new Map<string, Chunks>();
  readonly #waiting = new Map<number, (chunks: Chunks | undefined) => void>();
  #worker: Worker | undefined;
  #broken = typeof Worker === "undefined";
  #size = 0;
  #last = 0;

  /** The colours if they are known. */
  known(code: string, language: string): Chunks | undefined {
    return this.#kept.get(`${language}\n${code}`);
  }

  async ask(code: string, language: string, keep: boolean): Promise<Chunks> {
    const known = this.known(code, language);
    if (known || this.#broken) {
      return known ?? PLAIN;
    }
    this.#last += 1;
    const request: ColourRequest = { id: this.#last, code, language };
    const chunks = await new Promise<Chunks | undefined>((resolve) => {
      this.#waiting.set(request.id, resolve);
      this.#start().postMessage(request);
    });
    if (keep && !this.#broken) {
      this.#keep(`${language}\n${code}`, chunks ?? PLAIN);
    }
    return chunks ?? PLAIN;
  }

  #keep(key: string, chunks: Chunks): void {
    this.#kept.set(key, chunks);
    this.#size += key.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= KEPT) {
        break;
      }
      this.#kept.delete(oldest);
      this.#size -= oldest.length;
    }
  }

  #start(): Worker {
    if (!this.#worker) {
      this.#worker = new Worker(new URL("./colour_worker.ts", import.meta.url), { type: "module" });
      this.#worker.onmessage = ({ data }: MessageEvent<ColourAnswer>) => {
        this.#waiting.get(data.id)?.(data.chunks);
        this.#waiting.delete(data.id);
      };
      this.#worker.onerror = () => {
        this.#broken = true; // it could not be loaded: code stays plain
        for (const resolve of this.#waiting.values()) {
          resolve(undefined);
        }
        this.#waiting.clear();
      };
    }
    return this.#worker;
  }
}

const colourer = new Colourer();

/** The colours of a code's chunks, as far as they are known and have their turn. */
export function useColours(code: string, language: string, growing: boolean): Chunks {
  const [shown, setShown] = useState<Chunks>(() => {
    const known = colourer.known(code, language);
    return known && known.length <= 2 * A_FRAME ? known : PLAIN;
  });
  const step = growing ? Math.floor(code.length / 256) : code;
  // biome-ignore lint/correctness/useExhaustiveDependencies: while it grows, `step` stands for the code
  useEffect(() => {
    if (!language || code.length > (growing ? GROWING_LONGEST : LONGEST)) {
      return undefined;
    }
    let frame = 0;
    let ended = false;
    const reveal = (chunks: Chunks) => {
      if (ended) {
        return;
      }
      setShown((before) => {
        let same = 0;
        while (same < chunks.length && chunks[same] === before[same]) {
          same += 1;
        }
        const next = chunks.slice(0, same + A_FRAME);
        if (next.length < chunks.length) {
          frame = requestAnimationFrame(() => reveal(chunks));
        }
        return next;
      });
    };
    const timer = setTimeout(
      () => void colourer.ask(code, language, !growing).then(reveal),
      growing ? GROWING_MS : 0,
    );
    return () => {
      ended = true;
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [step, language, growing]);
  return shown;
}
