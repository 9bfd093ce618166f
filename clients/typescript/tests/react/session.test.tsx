// @vitest-environment happy-dom
/** Sessions in components: what they see, and how often. */
import { act } from "@testing-library/react";
import { memo } from "react";
import { expect, test, vi } from "vitest";
import type { Message } from "../../src/index.js";
import { useSession, useSessionValue } from "../../src/react/index.js";
import { agentMessage, liveStage, reset, userMessage } from "../client/stage.js";
import { drawFrames, frame, framesAsked, show } from "./screen.js";

drawFrames();

const textOf = (message: Message): string =>
  message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

const Texts = () => <p>{useSession("s").messages.map(textOf).join("|")}</p>;

test("what comes is shown with the next frame, and not before", async () => {
  const { client, socket } = await liveStage();
  const { container } = show(client, <Texts />);
  expect(container.textContent).toBe("Hell");
  act(() => socket.say("d", 7, 6, 10, 1, 1, "o"));
  expect(container.textContent).toBe("Hell");
  await frame();
  expect(container.textContent).toBe("Hello");
});

test("however much comes, there is one render for a frame", async () => {
  const { client, socket } = await liveStage();
  let renders = 0;
  const Counted = () => {
    renders++;
    return <Texts />;
  };
  const Watching = () => {
    useSession("s");
    return <Counted />;
  };
  show(client, <Watching />);
  renders = 0;
  for (let version = 6; version < 1006; version++) {
    socket.say("d", 7, version, 10, 1, 1, "o");
  }
  expect(renders).toBe(0);
  await frame();
  expect(renders).toBe(2); // StrictMode renders twice
  expect(framesAsked()).toBe(0);
});
