/**
 * Where the tests of the chat page play: the real page of a real server, people's browsers, and a bad line.
 *
 * What similar pages get wrong, and where it is tested here:
 * - a resumed stream draws the old answers again; a growing text flickers; a tab that began nothing misses the
 *   turns that follow: streaming
 * - a second tab waits for an answer that was given in the first: asking
 * - leaving a chat or the page stops its turn; one chat shows the text of another: switching
 * - a prompt is lost or doubled, a queued one vanishes, a cleared history comes back, a part of the page that
 *   could not be loaded ends all of it: returning
 * - an unlocked phone says that it is connected, and is frozen: waking
 * - a long answer is parsed again with each word, a long chat is drawn whole: long
 * - what a model wrote runs: safety
 * - an expired token is used again, a reader is shown what another one kept: tokens, and the client's tests
 */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, inject } from "vitest";
import { ServerProcess } from "../../../../typescript/tests/end_to_end/server.js";
import { launch, launchPlain, type PlainBrowser } from "../chromium.js";
import { LOST_LINK, openPage } from "../pages.js";
import { LinkProxy } from "../proxy.js";
import { AGENT, type DirectedTurn, Director } from "./director.js";
import { composer, say } from "./view.js";

export interface PageStage {
  readonly server: ServerProcess;
  /** Between the first person's pages and the server; a new one for each test. */
  readonly proxy: LinkProxy;
  /** The first person's browser; a new one for each test. */
  readonly context: BrowserContext;
  readonly director: Director;
  /** Open a page through the proxy, in the first person's browser. */
  open(path?: string): Promise<Page>;
  /** Open a page in a browser of its own, without a proxy: another device. */
  openElsewhere(path?: string, options?: BrowserContextOptions): Promise<Page>;
  /** Send a prompt that begins a turn, and take the turn. */
  begin(page: Page, prompt: string): Promise<DirectedTurn>;
  /** Begin a turn that says this, and ends. */
  answer(page: Page, prompt: string, text: string): Promise<void>;
}

export interface PageStageOptions {
  /** More of `midstream serve`. */
  readonly flags?: readonly string[];
  /** More of its environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Run in the first person's browser before its pages. */
  readonly prepare?: (context: BrowserContext) => Promise<void>;
  /** A browser with one user, whose pages can be hidden and frozen; other devices are other origins there. */
  readonly isPlain?: boolean;
}

/** Set the stage for a suite. */
export function pageStage({
  flags = [],
  environment = {},
  prepare,
  isPlain = false,
}: PageStageOptions = {}): PageStage {
  let director: Director | undefined;
  let server: ServerProcess | undefined;
  let browser: Browser | PlainBrowser | undefined;
  let proxy: LinkProxy | undefined;
  let context: BrowserContext | undefined;
  const elsewhere: BrowserContext[] = [];

  beforeAll(async () => {
    director = await Director.start();
    const given = ["--page", inject("page"), "--agent", AGENT, ...flags];
    [server, browser] = await Promise.all([
      ServerProcess.start(0, given, { ...director.environment, ...environment }),
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
    await Promise.all([isPlain ? undefined : context, ...elsewhere.splice(0)].map((one) => one?.close()));
    await proxy?.close();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.remove();
    await director?.close();
  });
  const begin = async (page: Page, prompt: string) => {
    const turn = there(director).turn(prompt);
    await say(page, prompt);
    return turn;
  };
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
    get director() {
      return there(director);
    },
    open: (path = "/") => openReady(there(context), address(there(proxy).pageUrl, path)),
    openElsewhere: async (path = "/", options = {}) => {
      const other = browser && "newContext" in browser ? await browser.newContext(options) : there(context);
      if (other !== context) {
        elsewhere.push(other);
      }
      return openReady(other, address(there(server).pageUrl, path));
    },
    begin,
    answer: async (page, prompt, text) => {
      const turn = await begin(page, prompt);
      await turn.say(text);
      await turn.done();
    },
  };
}

const address = (origin: string, path: string): string => new URL(path, origin).href;

/** Open a page and wait until it can be written in. */
async function openReady(context: BrowserContext, url: string): Promise<Page> {
  const page = await openPage(context, url, [LOST_LINK]);
  await composer(page).waitFor();
  return page;
}

function there<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("The stage is not set yet: use it within a test.");
  }
  return value;
}
