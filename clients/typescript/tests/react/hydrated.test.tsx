// @vitest-environment happy-dom
/** A page that a server rendered, taken over in a browser. */
import { act } from "@testing-library/react";
import { hydrateRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { MidstreamProvider, useSession, useSessionValue } from "../../src/react/index.js";
import { liveStage, Stage } from "../client/stage.js";
import { drawFrames, frame, textOf } from "./screen.js";

drawFrames();

function Page() {
  const { session, messages } = useSession("s");
  const title = useSessionValue(session, ({ info }) => info?.title ?? "no title");
  return (
    <p>
      {title}: {messages.map(textOf)}
    </p>
  );
}

test("a page that a server rendered is taken over as it is, then shows what the session has", async () => {
  const { client, socket } = await liveStage();
  const page = (shown: typeof client) => (
    <MidstreamProvider client={shown}>
      <Page />
    </MidstreamProvider>
  );
  const root = document.createElement("div");
  root.innerHTML = renderToString(page(new Stage().client()));
  expect(root.textContent).toBe("no title: ");
  const mismatched = vi.fn();
  const hydrated = await act(async () => hydrateRoot(root, page(client), { onRecoverableError: mismatched }));
  expect(mismatched).not.toHaveBeenCalled();
  expect(root.textContent).toBe("no title: Hell");
  socket.say("d", 7, 6, 10, 1, 1, "o");
  await frame();
  expect(root.textContent).toBe("no title: Hello");
  act(() => hydrated.unmount());
});
