/** The page is small: what a browser fetches before it can be used. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { describeInBrowser, launch } from "../chromium.js";
import { devtools } from "../pages.js";
import { visit } from "./house.js";

const LIMIT_BYTES = 200 * 1024;

interface Fetched {
  readonly path: string;
  /** Bytes of the body as it came, compressed. */
  readonly bytes: number;
  readonly encoding: string;
}

describeInBrowser("a page that is loaded for the first time", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("fetches at most 200 KB before a message can be written", async () => {
    const fetched: Fetched[] = [];
    const complaints = await visit({ browser, built: inject("page"), size: "desktop" }, async (visit) => {
      const { page } = visit;
      const line = await devtools(page);
      await line.send("Network.enable");
      await line.send("Network.setCacheDisabled", { cacheDisabled: true });
      const answers = new Map<string, { path: string; encoding: string; head: number }>();
      line.on("Network.responseReceived", ({ requestId, response }) => {
        const encoding =
          response.headers["content-encoding"] ?? response.headers["Content-Encoding"] ?? "none";
        answers.set(requestId, {
          path: new URL(response.url).pathname,
          encoding,
          head: response.encodedDataLength,
        });
      });
      line.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
        const answer = answers.get(requestId);
        if (answer) {
          fetched.push({ ...answer, bytes: encodedDataLength - answer.head });
        }
      });
      await page.goto(visit.url);
      await page.waitForSelector("#composer-text");
      await page.waitForFunction(() => document.activeElement?.id === "composer-text");
      await page.waitForLoadState("networkidle"); // what it fetches right after counts, too
    });
    const total = fetched.reduce((sum, { bytes }) => sum + bytes, 0);
    const rows = [...fetched, { path: "in all", bytes: total, encoding: "" }];
    console.log(
      rows.map(({ path, bytes, encoding }) => `${String(bytes).padStart(8)} ${path} ${encoding}`).join("\n"),
    );
    expect(fetched.map(({ path }) => path)).toContain("/");
    for (const { path, encoding } of fetched.filter(({ path }) => /\.(js|css)$|^\/$/.test(path))) {
      expect(encoding, path).not.toBe("none");
    }
    expect(total).toBeGreaterThan(50_000);
    expect(total).toBeLessThanOrEqual(LIMIT_BYTES);
    expect(complaints).toEqual([]);
  });
});
