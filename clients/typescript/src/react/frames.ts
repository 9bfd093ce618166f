/** When what components see is brought up to date: once for each frame that the screen draws. */

/** What may be found where React runs. */
interface Screen {
  requestAnimationFrame?(callback: () => void): unknown;
  cancelAnimationFrame?(frame: never): void;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: never): void;
}

/** Something that is brought up to date, and then tells so. */
export interface Shown {
  /** Take what changed; whether anything did. Nobody is told yet. */
  refresh(): boolean;
  /** Tell those who show it. */
  tell(): void;
}

/** Without frames there are as many updates as a screen usually has. */
const FRAME_MS = 16;
/** A page that is hidden, or covered, draws no frames. What is new must come to it all the same. */
const HIDDEN_MS = 250;

const waiting = new Set<Shown>();
let cancel: (() => void) | undefined;

/**
 * Have something refreshed with the next frame; asked often, it happens once. All that waits is refreshed
 * before anybody is told, so that no component sees one thing new and another one old.
 */
export function withNextFrame(shown: Shown): void {
  waiting.add(shown);
  cancel ??= schedule();
}

/** Have it refreshed no more. */
export function withoutFrame(shown: Shown): void {
  waiting.delete(shown);
}

function schedule(): () => void {
  const screen = globalThis as unknown as Screen;
  const hasFrames = typeof screen.requestAnimationFrame === "function";
  const timer = screen.setTimeout(flush, hasFrames ? HIDDEN_MS : FRAME_MS);
  const frame = hasFrames ? screen.requestAnimationFrame?.(flush) : undefined;
  return () => {
    screen.clearTimeout(timer as never);
    if (hasFrames) {
      screen.cancelAnimationFrame?.(frame as never);
    }
  };
}

function flush(): void {
  cancel?.();
  cancel = undefined;
  const all = [...waiting];
  waiting.clear();
  for (const shown of all.filter((one) => one.refresh())) {
    shown.tell();
  }
}
