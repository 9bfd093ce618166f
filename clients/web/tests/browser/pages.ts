/** Pages in a browser, and what goes wrong in them: an error that a test did not expect fails it. */
import type { BrowserContext, CDPSession, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";

/** How long a test waits for what must come, in ms. */
export const PATIENCE_MS = 20_000;

/** What a browser says of a server that is not there: it cannot be told not to. */
export const LOST_LINK = /WebSocket connection to .* failed|net::ERR_/;

/**
 * Open a page. When the test is over, its console must have had no errors but those that are `expected`,
 * and no exception may have been left uncaught.
 */
export async function openPage(
  context: BrowserContext,
  url: string,
  expected: readonly RegExp[] = [],
): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(`uncaught: ${error.stack ?? error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !expected.some((pattern) => pattern.test(message.text()))) {
      wrong.push(`console: ${message.text()}`);
    }
  });
  page.on("crash", () => wrong.push("the page crashed"));
  onTestFinished(async () => {
    await page.close().catch(() => undefined);
    expect(wrong, `errors in ${url}`).toEqual([]);
  });
  await page.goto(url);
  return page;
}

/** A page's line to the browser's own protocol, for what no script can do. */
export const devtools = (page: Page): Promise<CDPSession> => page.context().newCDPSession(page);

/** Wait until something outside of a page is so. */
export async function until(isSo: () => boolean, what: string): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!isSo()) {
    if (Date.now() > end) {
      throw new Error(`It did not come to this in ${PATIENCE_MS} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
