/** In a real browser no answer runs a script, asks for anything, or leads away; and code gets its colours. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { build, defaultClientConditions } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HOSTILE } from "../unit/markdown/hostile.js";
import { describeInBrowser, launch } from "./chromium.js";

const ORIGIN = "http://page.test";
const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
};

let folder: string;
let browser: Browser;
let page: Page;
const asked: string[] = [];
const wrong: string[] = [];

describeInBrowser("a hostile answer", () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "midstream-hostile-"));
    await build({
      configFile: false,
      root: fileURLToPath(new URL("hostile", import.meta.url)),
      logLevel: "error",
      resolve: { conditions: ["midstream-source", ...defaultClientConditions] },
      worker: { format: "es" },
      build: { outDir: folder, emptyOutDir: true, target: "es2022" },
    });
    browser = await launch();
    page = await browser.newPage();
    page.on("pageerror", ({ message }) => wrong.push(message));
    page.on("dialog", (dialog) => void dialog.dismiss().then(() => wrong.push("a dialog")));
    page.on("popup", (popup) => wrong.push(`a window: ${popup.url()}`));
    await page.route("**/*", async (route) => {
      const url = new URL(route.request().url());
      if (url.origin !== ORIGIN) {
        asked.push(url.href);
        await route.abort();
        return;
      }
      const name = url.pathname === "/" ? "/index.html" : url.pathname;
      const body = await readFile(join(folder, name)).catch(() => undefined);
      await route.fulfill(
        body ? { body, contentType: TYPES[extname(name)] ?? "application/octet-stream" } : { status: 404 },
      );
    });
    await page.goto(ORIGIN);
  });

  afterAll(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test("runs nothing, asks for nothing, and leads nowhere, at any step of its growth", async () => {
    for (const source of HOSTILE) {
      await page.evaluate(async (text) => {
        for (let end = 1; end <= text.length; end += 5) {
          window.draw(text.slice(0, end), true);
        }
        window.draw(text, false);
        for (const element of document.querySelectorAll("#root *:not(a):not(button)")) {
          element.dispatchEvent(new MouseEvent("click"));
        }
        await new Promise((resolve) => setTimeout(resolve, 5)); // what would run, runs in a task of its own
      }, source);
      const state = await page.evaluate(() => [location.href, "hacked" in window, document.title]);
      expect(state, source).toEqual([`${ORIGIN}/`, false, "Hostile answers"]);
    }
    expect(asked).toEqual([]);
    expect(wrong).toEqual([]);
  });

  test("colours come from a worker, and change no character", async () => {
    const code = `def f(x: int) -> str:\n    return f"<b>{x & 1}</b>"  # done\n`.repeat(60);
    await page.evaluate((text) => window.draw(`\`\`\`python\n${text}\`\`\`\n`, false), code);
    await page.waitForFunction(() => document.querySelectorAll("#root pre [class*=keyword]").length >= 100);
    const chunks = await page.locator("#root pre code").textContent();
    expect(chunks).toBe(code.trimEnd());
    expect(wrong).toEqual([]);
  });
});
