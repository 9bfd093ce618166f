/** Pages with a real client of a real server, and what is waited for on them. */
import { cleanup, configure, render } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterAll, afterEach, beforeAll } from "vitest";
import { WebSocket } from "ws";
import { Client, type SocketMaker, systemEnvironment } from "../../src/index.js";
import { MidstreamProvider } from "../../src/react/index.js";
import { ServerProcess } from "../end_to_end/server.js";

export const PATIENCE_MS = 30_000;

/** A server for the tests of a block, and clients that end with each test. */
export function withServer(speed: number) {
  const clients: Client[] = [];
  let server: ServerProcess | undefined;
  configure({ asyncUtilTimeout: PATIENCE_MS });
  beforeAll(async () => {
    server = await ServerProcess.start(speed);
  });
  afterEach(() => {
    cleanup();
    for (const client of clients.splice(0)) {
      client.close();
    }
  });
  afterAll(() => server?.remove());
  return {
    /** `kill -9`, and start it again. */
    async restart(): Promise<void> {
      await server?.kill();
      await server?.begin();
    },
    /** Another device. */
    device(): Client {
      const environment = systemEnvironment(WebSocket as unknown as SocketMaker);
      const client = new Client(server?.url ?? "", { environment });
      clients.push(client);
      return client;
    },
  };
}

/** Show a page, mounted twice as StrictMode does. */
export function open(client: Client, page: ReactNode) {
  const whole = (shown: ReactNode) => (
    <StrictMode>
      <MidstreamProvider client={client}>{shown}</MidstreamProvider>
    </StrictMode>
  );
  const { rerender, ...rest } = render(whole(page));
  return { ...rest, rerender: (shown: ReactNode) => rerender(whole(shown)) };
}
