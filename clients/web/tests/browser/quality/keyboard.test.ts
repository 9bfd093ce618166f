/** The page by keyboard alone, without motion for who wants none. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { describeInBrowser, launch } from "../chromium.js";
import { visit } from "./house.js";
import { ask, settled, states } from "./states.js";

const MOST_STOPS = 80;

/** Where the focus is, and how it is seen. */
interface Stop {
  readonly name: string;
  /** Whether the place looks another way with the focus than without. */
  readonly isSeen: boolean;
}

/** Give every place that can have the focus a number, and say what there is. */
const places = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const all = document.querySelectorAll<HTMLElement>(
      "a[href], button, input, select, textarea, [tabindex]",
    );
    const reachable = [...all].filter(
      (element) => element.tabIndex >= 0 && element.checkVisibility() && !element.matches(":disabled"),
    );
    return reachable.map((element, index) => {
      element.dataset.place = `${index} ${element.ariaLabel ?? element.textContent?.trim().slice(0, 40) ?? ""}`;
      return element.dataset.place;
    });
  });

/** Press Tab, and see where it leads; undefined where it leads out of the page. */
async function nextStop(page: Page): Promise<Stop | undefined> {
  await page.keyboard.press("Tab");
  return page.evaluate(async () => {
    const element = document.activeElement;
    if (!(element instanceof HTMLElement) || element === document.body) {
      return undefined;
    }
    // the ring may be drawn by what is around it
    const around: Element[] = [];
    for (let now: Element | null = element; now && around.length < 4; now = now.parentElement) {
      around.push(now);
    }
    const look = (): string =>
      around
        .map((one) => getComputedStyle(one))
        .map((style) =>
          [style.outline, style.boxShadow, style.border, style.clipPath, style.background].join(" "),
        )
        .join("\n");
    const drawn = async () => {
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      // what fades in is looked at when it is there
      const fades = document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.allSettled(fades.map((one) => one.finished));
    };
    await drawn();
    const focused = look();
    const opacity = around.reduce((sum, one) => sum * Number(getComputedStyle(one).opacity), 1);
    element.blur();
    await drawn();
    const blurred = look();
    element.focus();
    const name = element.dataset.place ?? element.outerHTML.slice(0, 80);
    return { name, isSeen: focused !== blurred && opacity > 0.3 };
  });
}

describeInBrowser("a page that is used by keyboard alone", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("Tab reaches everything, shows where it is, and leads out again", async () => {
    await visit({ browser, built: inject("page"), size: "desktop" }, async ({ page }) => {
      await ask(page, "Count these words, and name a source");
      await settled(page);
      await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
      const expected = await places(page);
      const reached = new Map<string, boolean>();
      for (let count = 0; count < MOST_STOPS; count++) {
        const stop = await nextStop(page);
        if (stop && reached.has(stop.name)) {
          break; // round again: nothing held it
        }
        if (stop) {
          reached.set(stop.name, stop.isSeen);
        }
      }
      console.log(`${reached.size} places by Tab: ${[...reached.keys()].join(" · ")}`);
      expect([...reached.keys()].sort()).toEqual([...expected].sort());
      expect([...reached].filter(([, isSeen]) => !isSeen).map(([name]) => name)).toEqual([]);
    });
  });

  test("menus, the palette and dialogs open, are walked through, and give the focus back", async () => {
    await visit({ browser, built: inject("page"), size: "desktop" }, async ({ page }) => {
      await ask(page, "help");
      const label = () =>
        page.evaluate(() => document.activeElement?.ariaLabel ?? document.activeElement?.textContent);
      const menu = page.locator("[aria-label='What to do with this chat']").first();
      await menu.focus();
      await page.keyboard.press("Enter");
      await page.waitForSelector("[role=menu]:popover-open [role^=menuitem]:focus"); // keys before that are nobody's
      const first = await label();
      await page.keyboard.press("ArrowDown");
      expect(await label()).not.toBe(first);
      await page.keyboard.press("Escape");
      await page.waitForSelector("[role=menu]:popover-open", { state: "detached" });
      expect(await label()).toBe("What to do with this chat");

      await page.focus("#composer-text");
      await page.keyboard.press("Control+k");
      await page.waitForSelector("[cmdk-item]");
      await page.keyboard.press("Escape");
      await page.waitForSelector("[cmdk-item]", { state: "detached" });
      expect(await page.evaluate(() => document.activeElement?.id)).toBe("composer-text");

      await menu.focus();
      await page.keyboard.press("Enter");
      await page.waitForSelector("[role=menu]:popover-open [role^=menuitem]:focus"); // keys before that are nobody's
      await page.keyboard.press("End"); // Delete, which asks first
      await page.keyboard.press("Enter");
      await page.waitForSelector("dialog[open]");
      for (let count = 0; count < 5; count++) {
        await page.keyboard.press("Tab");
        const isWithin = await page.evaluate(
          () =>
            document.activeElement === document.body || document.activeElement?.closest("dialog") !== null,
        );
        expect(isWithin, "what is behind a dialog is out of reach").toBe(true);
      }
      await page.keyboard.press("Escape");
      await page.waitForSelector("dialog[open]", { state: "detached" });
      expect(await page.locator("article").count()).toBeGreaterThan(0);
    });
  });

  test.each(["streaming", "reasoning", "tools", "queued"])(
    "nothing moves where no motion is wanted: %s",
    async (name) => {
      await visit({ browser, built: inject("page"), size: "phone" }, async (visit) => {
        await states[name]?.go(visit);
        await settled(visit.page);
        const moving = await visit.page.evaluate(() =>
          document
            .getAnimations()
            .filter(
              ({ playState, effect }) =>
                playState === "running" && Number(effect?.getComputedTiming().activeDuration) > 1,
            )
            .map(({ effect }) => (effect instanceof KeyframeEffect ? effect.target?.className : "")),
        );
        expect(moving).toEqual([]);
      });
    },
  );
});
