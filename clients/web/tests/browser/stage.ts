/** Where the client's own tests play: a real server with the fixture as its page, a proxy before it, a browser. */
import { Client, type SocketMaker, systemEnvironment } from "midstream-client";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from "vitest";
import { WebSocket } from "ws";
import { ServerProcess } from "../../../typescript/tests/end_to_end/server.js";
import { launch, launchPlain, type PlainBrowser } from "./chromium.js";
import { LOST_LINK, openPage } from "./pages.js";
import { LinkProxy } from "./proxy.js";

export interface Stage {
  readonly server: ServerProcess;
  /** Between the pages and the server; a new one for each test. */
  readonly proxy: LinkProxy;
  /** A browser's user; a new one for each test. */
  readonly context: BrowserContext;
  /** Open the fixture on a session; errors that are `expected` fail no test. */
  open(sessionId: string, query?: string, expected?: readonly RegExp[]): Promise<Page>;
}

let sessions = 0;
/** A session that no other test has. */
export const newSession = (): string => `s${++sessions}`;

export interface StageOptions {
  /** Run in each context before its pages. */
  readonly prepare?: (context: BrowserContext) => Promise<void>;
  /** A browser with one user, whose pages can be hidden and frozen. */
  readonly isPlain?: boolean;
  /** More flags of `midstream serve`. */
  readonly flags?: readonly string[];
}

/** Set the stage for a suite. `speed` is how fast the demo agent streams. */
export function stage(speed: number, { prepare, isPlain = false, flags = [] }: StageOptions = {}): Stage {
  let server: ServerProcess | undefined;
  let browser: Browser | PlainBrowser | undefined;
  let proxy: LinkProxy | undefined;
  let context: BrowserContext | undefined;

  beforeAll(async () => {
    [server, browser] = await Promise.all([
      ServerProcess.start(speed, ["--page", inject("fixture"), ...flags]),
      isPlain ? launchPlain() : launch(),
    ]);
    if ("context" in browser) {
      context = browser.context;
      await prepare?.(context);
    }
  });
  beforeEach(async () => {
    proxy = await LinkProxy.start(there(server).port);
    if (browser && "newContext" in browser) {
      context = await browser.newContext();
      await prepare?.(context);
    }
  });
  afterEach(async () => {
    if (!isPlain) {
      await context?.close();
    }
    await proxy?.close();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.remove();
  });
  return {
    get server() {
      return there(server);
    },
    get proxy() {
      return there(proxy);
    },
    get context() {
      return there(context);
    },
    open: (sessionId, query = "", expected = []) =>
      openPage(there(context), `${there(proxy).pageUrl}s/${sessionId}${query}`, [LOST_LINK, ...expected]),
  };
}

function there<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("The stage is not set yet: use it within a test.");
  }
  return value;
}

/** Wait until the session is equal to the server's. */
export async function untilLive(page: Page): Promise<void> {
  await page.waitForFunction(() => fixture.session.state === "live");
}

/** Send a prompt, and wait until its turn is over. */
export async function say(page: Page, text: string): Promise<void> {
  await page.evaluate(async (text) => {
    const handle = await fixture.session.prompt(text);
    await handle.finished();
  }, text);
}

/** Say something in the session from another device. */
export async function sayElsewhere(server: ServerProcess, sessionId: string, text: string): Promise<void> {
  const client = new Client(server.url, {
    environment: systemEnvironment(WebSocket as unknown as SocketMaker),
  });
  const session = await client.session(sessionId);
  const handle = await session.prompt(text);
  await handle.finished();
  client.close();
}

/** What users wrote in the session, as this page shows it. */
export const prompts = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    fixture.session.messages
      .filter(({ role }) => role === "user")
      .flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : ""))),
  );

/** The page's copy is the server's, by digests of everything. */
export async function expectEqual(page: Page): Promise<void> {
  await untilLive(page);
  const report = await page.evaluate(async () => {
    const { differences, compared } = await fixture.session.verify();
    return { differences, isWhole: compared === fixture.session.messages.length };
  });
  expect(report).toEqual({ differences: [], isWhole: true });
}
