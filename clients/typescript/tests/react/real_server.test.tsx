// @vitest-environment happy-dom
/** Hooks over a real server, which is killed in the middle of a turn. */
import { waitFor } from "@testing-library/react";
import { describe, expect, test } from "vitest";
import { useConnection, useSession, useSessions } from "../../src/react/index.js";
import { open, withServer } from "../adapters/page.js";
import { hasServer } from "../end_to_end/server.js";
import { textOf } from "./screen.js";

function Page() {
  const { messages, state } = useSession("shared", { create: true });
  const { sessions } = useSessions();
  return (
    <>
      <main>{messages.map(textOf).join("\n")}</main>
      <output>{`${state}, ${useConnection().state}, ${sessions.map(({ message_count }) => message_count)}`}</output>
    </>
  );
}

describe.skipIf(!hasServer)("two pages of one session", { timeout: 60_000 }, () => {
  const server = withServer(5);

  test("show the same in the middle of a turn, and after the server was killed in it", async () => {
    const [ann, bob] = [server.device(), server.device()];
    const pages = [open(ann, <Page />), open(bob, <Page />)];
    const texts = () => pages.map(({ container }) => container.querySelector("main")?.textContent ?? "");
    const session = await ann.session("shared", { create: true });
    await session.prompt("a long story");
    await waitFor(() => expect(texts().every((text) => text.includes("A harbour keeps"))).toBe(true));
    await server.restart();
    const again = await session.prompt("hello again");
    expect((await again.finished(30_000)).state).toBe("completed");
    await waitFor(() => {
      const [one, other] = texts();
      expect(one).toContain("said “hello again”");
      expect(one).toBe(other);
      for (const { container } of pages) {
        expect(container.querySelector("output")?.textContent).toMatch(/^live, live, [1-9]/);
      }
    });
    for (const client of [ann, bob]) {
      expect((await client.open("shared").verify()).isEqual).toBe(true);
    }
  });
});
