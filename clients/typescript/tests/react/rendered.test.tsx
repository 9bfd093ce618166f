/** Sessions in components that a server renders. */
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import {
  MidstreamProvider,
  useConnection,
  useSession,
  useSessions,
  useSessionValue,
  useTurnElapsed,
} from "../../src/react/index.js";
import { Stage, settle } from "../client/stage.js";

function Page() {
  const { session, messages, state } = useSession("s", { create: true });
  const { state: link } = useConnection();
  const title = useSessionValue(session, ({ info }) => info?.title ?? "no title");
  const elapsed = useTurnElapsed(session);
  const { sessions } = useSessions();
  return (
    <p>
      {[
        session.sessionId,
        messages.length,
        state,
        link,
        title,
        elapsed?.phase ?? "no turn",
        sessions.length,
      ].join(", ")}
    </p>
  );
}

test("a server renders a session as one of which nothing is known, connects to nothing and can end", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  const stage = new Stage();
  const client = stage.client();
  const html = renderToString(
    <MidstreamProvider client={client}>
      <Page />
    </MidstreamProvider>,
  );
  expect(html).toBe("<p>s, 0, connecting, connecting, no title, no turn, 0</p>");
  await settle();
  expect(stage.sockets).toEqual([]);
  expect(timers).toHaveBeenCalled();
  for (const { value } of timers.mock.results) {
    expect((value as NodeJS.Timeout).hasRef()).toBe(false); // it does not keep the program alive
  }
  timers.mockRestore();
});

test("without a client, what is missing is said", () => {
  expect(() => renderToString(<Page />)).toThrow("MidstreamProvider");
});
