/** Every main state can be used by everybody: axe finds nothing, in both themes, on a phone and on a desk. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { describeInBrowser, launch } from "../chromium.js";
import { SIZE_NAMES, THEMES, visit } from "./house.js";
import { settled, states } from "./states.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds wrong, each in a line: how bad, which rule, where. */
async function violations(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    await Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => undefined)));
    const { axe } = globalThis as unknown as { axe: { run(): Promise<AxeResults> } };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, impact, nodes }) =>
      nodes
        // which levels an answer's own headings have is the word of the agent
        .filter(({ target }) => id !== "heading-order" || !document.querySelector(`article ${target}`))
        .map((node) => `${impact} ${id}: ${node.target.join(" ")} ${node.failureSummary}`),
    );
  });
}

describeInBrowser("a page that everybody can use", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  describe.each(SIZE_NAMES)("on a %s", (size) => {
    const names = Object.keys(states).filter((name) => states[name]?.sizes?.includes(size) ?? true);
    test.each(names)("axe finds nothing, and the console is silent: %s", async (name) => {
      const state = states[name];
      const found: Record<string, string[]> = {};
      const complaints = await visit(
        { browser, built: inject("page"), size, flags: state?.flags ?? [] },
        async (visit) => {
          await state?.go(visit);
          await settled(visit.page);
          await visit.page.evaluate(AXE);
          for (const theme of THEMES) {
            await visit.page.emulateMedia({ colorScheme: theme });
            found[theme] = await violations(visit.page);
          }
        },
      );
      expect(found).toEqual({ light: [], dark: [] });
      expect(complaints).toEqual([]);
    });
  });
});
