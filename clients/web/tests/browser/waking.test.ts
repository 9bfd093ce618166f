/**
 * Laws of a page that was away: hidden, frozen, in the back/forward cache, or without a network. When it is seen
 * again it proves that its connection lives, or makes a new one, within a second.
 */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "./chromium.js";
import { devtools } from "./pages.js";
import { expectEqual, newSession, say, stage, untilLive } from "./stage.js";

const TEN_MINUTES_MS = 600_000;

declare global {
  /** How much later it is in the page than by the machine's clocks, in ms. */
  var later: number;
}

/**
 * Let a page's clocks be put forward. Nothing else is faked: a frozen page runs no timers, so all that ten
 * minutes change for it are its clocks. (Chromium's virtual time would stop the sockets, too.)
 */
async function withClocks(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    globalThis.later = 0;
    const { now } = Date;
    Date.now = () => now() + globalThis.later;
    const monotonic = performance.now.bind(performance);
    performance.now = () => monotonic() + globalThis.later;
  });
}

/** Freeze the page, as a browser does with one that is long in the background, for ten minutes. */
async function sleep(page: Page, meanwhile: () => Promise<void>): Promise<void> {
  const tools = await devtools(page);
  await tools.send("Page.setWebLifecycleState", { state: "frozen" });
  await meanwhile();
  await page.evaluate((ms) => {
    globalThis.later += ms;
  }, TEN_MINUTES_MS);
  await tools.send("Page.setWebLifecycleState", { state: "active" });
  await tools.detach();
}

/** How long after it woke the session was live again, by the page's own clock; states before that are not counted. */
async function msUntilLive(page: Page, event: string): Promise<number> {
  await page.waitForFunction((name) => fixture.events.some((event) => event.name === name), event);
  const woken = await page.evaluate(
    (name) => fixture.events.findLast((event) => event.name === name)?.at,
    event,
  );
  await page.waitForFunction(
    (at) => fixture.states.some((noted) => noted.state === "live" && noted.at >= at),
    woken ?? 0,
  );
  return page.evaluate(
    (at) => (fixture.states.find((noted) => noted.state === "live" && noted.at >= at)?.at ?? 0) - at,
    woken ?? 0,
  );
}

describeInBrowser("a page that was away", () => {
  const here = stage(0, withClocks);

  test("frozen for ten minutes, its socket half-open, it is equal again within a second", async () => {
    const sessionId = newSession();
    const page = await here.open(sessionId);
    await untilLive(page);
    await say(page, "hello");
    await sleep(page, async () => {
      here.proxy.freeze();
      const other = await here.open(sessionId);
      await untilLive(other);
      await say(other, "while you slept");
      await other.close();
    });
    const ms = await msUntilLive(page, "resume");
    expect(ms).toBeLessThan(1000);
    expect(await page.evaluate(() => fixture.text())).toContain("while you slept");
    expect(await page.evaluate(() => fixture.modes.at(-1))).not.toBe("reset");
    await expectEqual(page);
  });

  test("frozen for ten minutes, its socket alive, it keeps it", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    await say(page, "hello");
    await sleep(page, async () => undefined);
    await page.waitForFunction(() => fixture.events.some(({ name }) => name === "resume"));
    await say(page, "and on");
    await expectEqual(page);
    expect(await page.evaluate(() => fixture.states.filter(({ state }) => state === "live").length)).toBe(1);
    expect(here.proxy.open("socket")).toHaveLength(1);
  });

  test("back from the back/forward cache, it is the same page, and equal", async () => {
    const sessionId = newSession();
    const page = await here.open(sessionId);
    await untilLive(page);
    await say(page, "hello");
    await page.evaluate(() => {
      globalThis.later = 1; // what only this very page has
    });
    await page.goto(`${here.proxy.pageUrl}robots.txt`, { waitUntil: "commit" }).catch(() => undefined);
    // in the cache no socket is open: a page with one would not be kept
    expect(here.proxy.open("socket")).toHaveLength(0);
    const other = await here.open(sessionId);
    await untilLive(other);
    await say(other, "while you were away");
    await page.goBack({ waitUntil: "commit" });
    const ms = await msUntilLive(page, "pageshow");
    expect(ms).toBeLessThan(1000);
    const events = await page.evaluate(() => fixture.events.filter(({ name }) => name.startsWith("page")));
    expect(events.map(({ name, persisted }) => [name, persisted])).toEqual([
      ["pageshow", false],
      ["pagehide", true],
      ["pageshow", true],
    ]);
    expect(await page.evaluate(() => globalThis.later)).toBe(1);
    expect(await page.evaluate(() => fixture.text())).toContain("while you were away");
    await expectEqual(page);
  });

  test("on a network again, it does not wait for its next attempt", async () => {
    const page = await here.open(newSession(), "?patient");
    await untilLive(page);
    await here.context.setOffline(true);
    here.proxy.cut("socket");
    await page.waitForFunction(() => fixture.session.state === "offline");
    await page.evaluate(() => void fixture.session.prompt("written without a network"));
    here.proxy.heal();
    await here.context.setOffline(false);
    await untilLive(page);
    await page.waitForFunction(() => fixture.session.pending.length === 0);
    expect(await page.evaluate(() => fixture.events.map(({ name }) => name).slice(-2))).toEqual([
      "offline",
      "online",
    ]);
    await expectEqual(page);
  });

  test("told that it is offline when it is not, it stays connected", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    // the sockets that are open stay open: what a browser says of the network is a hint
    await here.context.setOffline(true);
    await page.waitForFunction(() => fixture.events.some(({ name }) => name === "offline"));
    await page.evaluate(async () => (await fixture.session.prompt("are you there?")).finished());
    expect(await page.evaluate(() => fixture.states.filter(({ state }) => state === "live").length)).toBe(1);
    await here.context.setOffline(false);
    await expectEqual(page);
  });

  test("an attempt that leads nowhere is given up when the page is seen again", async () => {
    const page = await here.open(newSession(), "?patient");
    await untilLive(page);
    here.proxy.swallow();
    await page.evaluate(() => dispatchEvent(new Event("focus")));
    await page.waitForFunction(() => fixture.client.state === "connecting");
    await page.evaluate((ms) => {
      globalThis.later += ms;
    }, TEN_MINUTES_MS);
    here.proxy.heal();
    await page.evaluate(() => dispatchEvent(new Event("focus")));
    await untilLive(page);
    await expectEqual(page);
  });

  test("a call that cannot load its code now is an error, and no end", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    here.proxy.cut("socket", "request");
    const failed = await page.evaluate(() =>
      fixture.session.verify().then(
        () => "",
        (error: unknown) => String(error),
      ),
    );
    expect(failed).not.toBe("");
    expect(await page.evaluate(() => fixture.session.state)).not.toBe("closed");
    here.proxy.heal();
    await say(page, "still here");
    await expectEqual(page);
  });
});
