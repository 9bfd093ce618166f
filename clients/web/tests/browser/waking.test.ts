/**
 * Laws of a page that was away: hidden, frozen, in the back/forward cache, or without a network. When it is seen
 * again it proves that its connection lives, or makes a new one, within a second.
 */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "./chromium.js";
import { devtools, until } from "./pages.js";
import { expectEqual, newSession, say, sayElsewhere, stage, untilLive } from "./stage.js";

const TEN_MINUTES_MS = 600_000;
/** The second is a figure of the page, not of a machine that does other work: one of three tries must hold it. */
const TIMED = { retry: 2 };

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

/** How long after this event the page's session was live again, by the page's own clock. */
async function msUntilLive(page: Page, event: string): Promise<number> {
  await page.waitForFunction(
    ([name, ended]) => {
      const woken =
        fixture.events.filter((event) => event.name === name).at(-1)?.at ?? Number.POSITIVE_INFINITY;
      return fixture.states.some(({ state, at }) => state === ended && at >= woken);
    },
    [event, "live"] as const,
    { polling: 20 }, // animation frames come to no page in the background
  );
  return page.evaluate((name) => {
    const woken = fixture.events.filter((event) => event.name === name).at(-1)?.at ?? 0;
    return (fixture.states.find(({ state, at }) => state === "live" && at >= woken)?.at ?? 0) - woken;
  }, event);
}

describeInBrowser("a page that was frozen for ten minutes", () => {
  const here = stage(0, { prepare: withClocks, isPlain: true });

  // Chromium ends the sockets of a frozen page, and says so when it thaws; other browsers say nothing
  for (const line of ["half-open", "alive"]) {
    test(`is equal again within a second of being woken, its line ${line}`, TIMED, async () => {
      const sessionId = newSession();
      const page = await here.open(sessionId);
      await untilLive(page);
      await say(page, "hello");
      await sleep(page, async () => {
        if (line === "half-open") {
          here.proxy.freeze();
        }
        await sayElsewhere(here.server, sessionId, "while you slept");
      });
      const ms = await msUntilLive(page, "resume");
      expect(await page.evaluate(() => fixture.events.map(({ name }) => name))).toContain("freeze");
      expect(await page.evaluate(() => fixture.text())).toContain("while you slept");
      expect(await page.evaluate(() => fixture.modes.at(-1))).not.toBe("reset");
      expect(ms).toBeLessThan(1000);
      await expectEqual(page);
    });
  }
});

describeInBrowser("a page that was away", () => {
  const here = stage(0, { prepare: withClocks });

  test("is equal again within a second of being seen, its socket half-open", TIMED, async () => {
    const sessionId = newSession();
    const page = await here.open(sessionId);
    await untilLive(page);
    await say(page, "hello");
    here.proxy.freeze();
    const other = await here.open(sessionId);
    await untilLive(other);
    await say(other, "while you were away");
    // as on a phone that was unlocked: the socket says that it is open, and the clocks went on
    await page.evaluate((ms) => {
      globalThis.later += ms;
      document.dispatchEvent(new Event("visibilitychange"));
    }, TEN_MINUTES_MS);
    const ms = await msUntilLive(page, "visibilitychange");
    expect(await page.evaluate(() => fixture.text())).toContain("while you were away");
    expect(ms).toBeLessThan(1000);
    await expectEqual(page);
  });

  test("keeps a socket that is alive", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    await page.evaluate((ms) => {
      globalThis.later += ms;
      document.dispatchEvent(new Event("visibilitychange"));
    }, TEN_MINUTES_MS);
    await say(page, "hello");
    expect(await page.evaluate(() => fixture.states.filter(({ state }) => state === "live").length)).toBe(1);
    expect(here.proxy.open("socket")).toHaveLength(1);
    await expectEqual(page);
  });

  test("back from the back/forward cache, it is the same page, and equal", TIMED, async () => {
    const sessionId = newSession();
    const page = await here.open(sessionId);
    await untilLive(page);
    await say(page, "hello");
    await page.evaluate(() => {
      globalThis.later = 1; // what only this very page has
    });
    await page.goto("about:blank");
    // in the cache no socket is open: a page with one would not be kept
    await until(() => here.proxy.open("socket").length === 0, "the page's socket is closed");
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
    // what a browser says of the network is a hint: after a change of networks it may be wrong for a while
    await page.evaluate(() => dispatchEvent(new Event("offline")));
    await say(page, "are you there?");
    expect(await page.evaluate(() => fixture.states.filter(({ state }) => state === "live").length)).toBe(1);
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
