/**
 * The browser of the tests: a Chromium that is installed here. Where there is none, tests in a browser are
 * skipped, and say how to get one.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, type BrowserContext, chromium } from "playwright-core";
import { describe } from "vitest";
import { hasServer } from "../../../typescript/tests/end_to_end/server.js";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** What a headless browser on a test machine needs, and what would only make noise. */
const FLAGS = [
  "--no-sandbox", // as root, in a container
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Where a command of this name is; undefined where there is none. */
function found(name: string): string | undefined {
  try {
    const path = execFileSync("/bin/sh", ["-c", 'command -v "$1"', "sh", name], { encoding: "utf8" });
    return path.trim() || undefined;
  } catch {
    return undefined;
  }
}

const given = process.env.MIDSTREAM_CHROMIUM;
const path = given ? found(given) : NAMES.map(found).find((found) => found !== undefined);

/** Why there can be no tests in a browser; undefined where there can. */
export const missing = !hasServer
  ? "there is no Python with midstream: make clients, or name one by MIDSTREAM_PYTHON"
  : path === undefined
    ? `there is no ${given ?? "Chromium"}: install Debian's (apt-get install chromium), or name one by MIDSTREAM_CHROMIUM`
    : undefined;

/** A suite of tests in a browser. */
export function describeInBrowser(name: string, suite: () => void): void {
  if (missing) {
    describe.skip(`${name} (skipped: ${missing})`, suite);
  } else {
    describe(name, suite);
  }
}

/** Start the browser. With `flags`, more of its command line. */
export function launch(flags: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: there(path),
    args: [...FLAGS, ...flags],
    // with this, which Playwright gives by default, no page ever enters the back/forward cache
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
  });
}

/** A browser that was started by itself. */
export interface PlainBrowser {
  /** Its one user. */
  readonly context: BrowserContext;
  close(): Promise<void>;
}

/**
 * Start a browser as a person has it, and only then look into it. In those that Playwright starts every page
 * seems to be in the foreground, and a page that is seen is never frozen.
 */
export async function launchPlain(): Promise<PlainBrowser> {
  const folder = await mkdtemp(join(tmpdir(), "midstream-browser-"));
  const flags = ["--headless", "--remote-debugging-port=0", `--user-data-dir=${folder}`, "about:blank"];
  const child = spawn(there(path), [...FLAGS, ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the browser ended with ${code}`)));
    createInterface(child.stderr).on("line", (line) => {
      const found = /^DevTools listening on (ws:.*)$/.exec(line);
      if (found?.[1]) {
        resolve(found[1]);
      }
    });
  });
  const browser = await chromium.connectOverCDP(address, { noDefaults: true });
  const [context] = browser.contexts();
  return {
    context: there(context),
    close: async () => {
      await browser.close();
      child.kill();
      await ended;
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function there<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error(`There is no browser: ${missing}`);
  }
  return value;
}
