/** Where the page's quality is looked at: the built page, on a real server that plays scenes. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ServerProcess } from "../../../../typescript/tests/end_to_end/server.js";
import { LinkProxy } from "../proxy.js";

const HERE = dirname(fileURLToPath(import.meta.url));

export const SIZES = {
  phone: { width: 390, height: 844 },
  desktop: { width: 1280, height: 800 },
} as const;
export type Size = keyof typeof SIZES;
export const SIZE_NAMES: readonly Size[] = ["phone", "desktop"];
export const THEMES = ["light", "dark"] as const;

/** The page as `npm run build` makes it, in a folder of its own. */
export interface BuiltPage {
  readonly folder: string;
  remove(): Promise<void>;
}

/** Build the page from what stands in the tree now, in a process of its own: nothing of a test run is in it. */
export async function buildPage(): Promise<BuiltPage> {
  const folder = await mkdtemp(join(tmpdir(), "midstream-page-"));
  const page = join(folder, "page");
  const vite = join(dirname(createRequire(import.meta.url).resolve("vite/package.json")), "bin/vite.js");
  const args = [vite, "build", "--outDir", page, "--emptyOutDir", "--logLevel", "warn"];
  await promisify(execFile)(process.execPath, args, {
    cwd: join(HERE, "../../.."),
    env: { ...process.env, NODE_ENV: "production" },
  });
  return { folder: page, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A server that plays the scenes of scenes_agent.py, and serves this page. `flags` are more of its own. */
export const startServer = (page: string, flags: readonly string[] = []): Promise<ServerProcess> =>
  ServerProcess.start(
    0,
    ["--agent", "scenes_agent:agent", "--page", page, "--log-level", "error", ...flags],
    {
      PYTHONPATH: [HERE, process.env.PYTHONPATH].filter(Boolean).join(":"),
    },
  );

/** A reader before the page, and what the reader can do. */
export interface Visit {
  readonly page: Page;
  readonly server: ServerProcess;
  /** The line to the server, which can be cut. */
  readonly proxy: LinkProxy;
  readonly isPhone: boolean;
  /** Where the page is. */
  readonly url: string;
}

/** Everything that the page's console said and that a reader's console should not: warnings too. */
export type Complaints = string[];

/** A user of the browser with a screen of this size. */
export function newContext(browser: Browser, size: Size): Promise<BrowserContext> {
  const isPhone = size === "phone";
  return browser.newContext({
    viewport: SIZES[size],
    deviceScaleFactor: isPhone ? 2 : 1,
    hasTouch: isPhone,
    isMobile: isPhone,
    reducedMotion: "reduce",
    locale: "en-GB",
    timezoneId: "UTC",
  });
}

/** Note what a page's console says. That a server is away is said by the browser itself, and is no fault. */
export function complaintsOf(page: Page): Complaints {
  const complaints: Complaints = [];
  page.on("pageerror", (error) => complaints.push(`uncaught: ${error.stack ?? error.message}`));
  page.on("crash", () => complaints.push("the page crashed"));
  page.on("console", (line) => {
    const isLostLink = /WebSocket connection to .* failed|net::ERR_/.test(line.text());
    if (["error", "warning", "assert"].includes(line.type()) && !isLostLink) {
      complaints.push(`${line.type()}: ${line.text()}`);
    }
  });
  return complaints;
}

export interface VisitOptions {
  readonly browser: Browser;
  readonly built: string;
  readonly size: Size;
  readonly flags?: readonly string[];
}

/** Open the page on a new server, and close both after `use`; returns what the console said. */
export async function visit(
  options: VisitOptions,
  use: (visit: Visit) => Promise<void>,
): Promise<Complaints> {
  const server = await startServer(options.built, options.flags);
  const proxy = await LinkProxy.start(server.port);
  const context = await newContext(options.browser, options.size);
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const complaints = complaintsOf(page);
    await page.goto(proxy.pageUrl);
    await use({ page, server, proxy, isPhone: options.size === "phone", url: proxy.pageUrl });
    return complaints;
  } finally {
    await context.close();
    await proxy.close();
    await server.remove();
  }
}
