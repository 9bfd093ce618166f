/**
 * The browser of the tests: a Chromium that is installed here. Where there is none, tests in a browser are
 * skipped, and say how to get one.
 */
import { execFileSync } from "node:child_process";
import { type Browser, chromium } from "playwright-core";
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
  if (path === undefined) {
    throw new Error(`No browser: ${missing}`);
  }
  return chromium.launch({
    executablePath: path,
    args: [...FLAGS, ...flags],
    // with this, which Playwright gives by default, no page ever enters the back/forward cache
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
  });
}
