/** Laws of a page that was frozen or asleep for ten minutes: what it shows is true again within a second. */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { devtools } from "../pages.js";
import { type PageStage, pageStage } from "./page_stage.js";
import { expectEqual, pathOf, untilAnswered, untilLive, untilQuiet } from "./view.js";

const TEN_MINUTES_MS = 600_000;
/** The second is the page's; a machine that has other things to do may take some of it, but not each time. */
const TIMED = { retry: 2 };
/** What is said while the page sleeps. */
const NEWS = "This came while you slept.";

interface Sleeper {
  /** How much later it is in the page than by the machine's clocks, in ms. */
  later: number;
  /** When it woke, and when it first showed the news, in ms since it began. */
  woke: number;
  shown: number;
}

declare global {
  var sleeper: Sleeper;
}

/** Let the page's clocks be put forward, and note when it wakes and when it shows the news. */
async function withClocks(context: BrowserContext): Promise<void> {
  await context.addInitScript((news) => {
    const sleeper = { later: 0, woke: 0, shown: 0 };
    globalThis.sleeper = sleeper;
    const { now } = Date;
    Date.now = () => now() + sleeper.later;
    const monotonic = performance.now.bind(performance);
    performance.now = () => monotonic() + sleeper.later;
    for (const name of ["resume", "visibilitychange"]) {
      document.addEventListener(name, () => {
        sleeper.woke ||= sleeper.later && performance.now();
      });
    }
    new MutationObserver(() => {
      if (!sleeper.shown && document.body?.textContent?.includes(news)) {
        sleeper.shown = performance.now();
      }
    }).observe(document, { subtree: true, childList: true, characterData: true });
  }, NEWS);
}

/** A page in the middle of a turn, and what another device does meanwhile. */
async function midTurn(here: PageStage) {
  const page = await here.open();
  const turn = await here.begin(page, "talk in your sleep");
  await turn.say("I begin. ");
  await untilAnswered(page, "I begin.");
  const meanwhile = async () => {
    await turn.say(NEWS);
    const other = await here.openElsewhere(pathOf(page));
    await other.getByText(NEWS).first().waitFor();
  };
  const after = async () => {
    await page.waitForFunction(() => sleeper.shown > 0, undefined, { polling: 20 });
    const { woke, shown } = await page.evaluate(() => sleeper);
    expect(woke).toBeGreaterThan(0);
    expect(shown - woke).toBeLessThan(1000);
    await untilLive(page);
    await turn.say(" And I end.");
    await untilAnswered(page, `${NEWS} And I end.`);
    await turn.done();
    await untilQuiet(page);
    await expectEqual(page);
  };
  return { page, meanwhile, after };
}

const putForward = (page: Page): Promise<void> =>
  page.evaluate((ms) => {
    sleeper.later += ms;
  }, TEN_MINUTES_MS);

describeInBrowser("the chat page, frozen for ten minutes in mid-turn", () => {
  const here = pageStage({ prepare: withClocks, isPlain: true });

  for (const line of ["half-open", "alive"]) {
    test(`is live and equal within a second of waking, its line ${line}`, TIMED, async () => {
      const { page, meanwhile, after } = await midTurn(here);
      const tools = await devtools(page);
      await tools.send("Page.setWebLifecycleState", { state: "frozen" });
      if (line === "half-open") {
        here.proxy.freeze();
      }
      await meanwhile();
      await putForward(page);
      await tools.send("Page.setWebLifecycleState", { state: "active" });
      await tools.detach();
      await page.bringToFront();
      await after();
    });
  }
});

describeInBrowser("the chat page on a phone that was unlocked", () => {
  const here = pageStage({ prepare: withClocks });

  test("is live and equal within a second, although its socket said that it was open", TIMED, async () => {
    const { page, meanwhile, after } = await midTurn(here);
    here.proxy.freeze(); // the line is dead, and no end of it knows
    await meanwhile();
    await putForward(page);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await after();
  });
});
