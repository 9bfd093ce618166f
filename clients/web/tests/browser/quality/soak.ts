/**
 * Streams a very long answer into the page, and says what it costs.
 *
 *   npm run soak -- [tokens] [tokens a second; 0 without pauses]
 *
 * By default 100,000 tokens at 1,000 a second, far faster than any model, into a chat of 500 messages. It ends
 * with 1 where the page froze. MIDSTREAM_PYTHON names the Python that runs the server, MIDSTREAM_CHROMIUM the
 * browser.
 */
import type { CDPSession, Page } from "playwright-core";
import { launch, missing } from "../chromium.js";
import { devtools } from "../pages.js";
import { costOf, countReact, described } from "./cost.js";
import { past } from "./history.js";
import { buildPage, visit } from "./house.js";
import { answered, say } from "./states.js";

/** A page that shows nothing for so long is frozen for its reader, in ms. */
const FROZEN_MS = 1000;

/** What the page holds, in words. */
async function held(page: Page, line: CDPSession): Promise<string> {
  await line.send("HeapProfiler.collectGarbage");
  const { usedSize } = await line.send("Runtime.getHeapUsage");
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  return `${(usedSize / 1e6).toFixed(1)} MB heap, ${elements} elements`;
}

/** Stream, and say what it cost; returns whether the page froze. */
export async function main([tokens = "100000", rate = "1000"]: readonly string[]): Promise<boolean> {
  if (missing) {
    throw new Error(`Nothing can be streamed: ${missing}`);
  }
  const [built, browser, long] = await Promise.all([buildPage(), launch(), past({ long: 250 })]);
  const flags = ["--database", long.database];
  let hasFrozen = false;
  try {
    await visit({ browser, built: built.folder, size: "desktop", flags }, async ({ page, url }) => {
      page.setDefaultTimeout(0);
      await countReact(page);
      await page.goto(`${url}s/long`);
      await page.waitForSelector("article");
      const line = await devtools(page);
      await line.send("HeapProfiler.enable");
      console.log(`before: ${await held(page, line)}`);
      const cost = await costOf(page, async () => {
        await say(page, `flood ${tokens} ${rate}`);
        await page.waitForSelector("[aria-label='Stop the answer']");
        await answered(page);
      });
      console.log(described(cost, Number(tokens)));
      console.log(`after: ${await held(page, line)}`);
      hasFrozen = cost.longestFrameMs > FROZEN_MS && cost.longestOwnMs > FROZEN_MS;
    });
  } finally {
    await browser.close();
    await Promise.all([built.remove(), long.remove()]);
  }
  console.log(hasFrozen ? "The page froze." : "The page did not freeze.");
  return hasFrozen;
}
