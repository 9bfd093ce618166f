/** A screen whose frames the test draws, and components on it that say what they show. */
import { act, cleanup, render } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterEach, beforeEach, vi } from "vitest";
import type { Client, Message } from "../../src/index.js";
import { MidstreamProvider } from "../../src/react/index.js";
import { type FakeSocket, settle } from "../client/stage.js";

let frames = new Map<number, () => void>();
let asked = 0;

/** From here on, the tests of a file draw frames themselves. */
export function drawFrames(): void {
  beforeEach(() => {
    frames = new Map();
    vi.stubGlobal("requestAnimationFrame", (callback: () => void) => {
      frames.set(++asked, callback);
      return asked;
    });
    vi.stubGlobal("cancelAnimationFrame", (frame: number) => frames.delete(frame));
  });
  afterEach(() => {
    cleanup();
    vi.unstubAllGlobals();
  });
}

/** Draw one frame. */
export async function frame(): Promise<void> {
  await act(async () => {
    await settle();
    const due = [...frames.values()];
    frames.clear();
    for (const callback of due) {
      callback();
    }
  });
}

/** How many frames are asked for. */
export const framesAsked = (): number => frames.size;

/** Do something, and let React take what comes of it. */
export async function happens(does: () => unknown): Promise<void> {
  await act(async () => {
    does();
    await settle();
  });
}

/** The text of a message. */
export const textOf = (message: Message): string =>
  message.parts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("");

/** Show something with a client above it, mounted twice as StrictMode does. */
export function show(client: Client, element: ReactNode) {
  const whole = (shown: ReactNode) => (
    <StrictMode>
      <MidstreamProvider client={client}>{shown}</MidstreamProvider>
    </StrictMode>
  );
  const { rerender, ...rest } = render(whole(element));
  return { ...rest, rerender: (shown: ReactNode) => rerender(whole(shown)) };
}

/** Answer the newest `subscribe` to a session. */
export function answerSubscribe(socket: FakeSocket, sessionId: string, channel: number, sync: object): void {
  const call = socket
    .calls("subscribe")
    .filter(({ params }) => params.session_id === sessionId)
    .at(-1);
  if (!call) {
    throw new Error(`${sessionId} was not subscribed to; sent: ${JSON.stringify(socket.sent)}`);
  }
  socket.say("result", call.id, { channel, sync });
}
