/**
 * Writes pictures of the chat page's states, for people to look at: at phone and desktop width, light and dark.
 *
 *   node scripts/screenshots.mjs [folder] [state ...]
 *
 * It builds the page, starts the demo server on a free port, and drives Chromium. MIDSTREAM_PYTHON names the
 * Python to use, MIDSTREAM_CHROMIUM the browser.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";
import { build } from "vite";
import { startServer } from "./demo_server.mjs";
import { states } from "./states.mjs";

const SIZES = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } };
const THEMES = ["light", "dark"];
const CHROMIUM_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const [folder = "screenshots", ...only] = process.argv.slice(2);
const target = resolve(folder);
const scratch = await mkdtemp(join(tmpdir(), "midstream-shots-"));
await mkdir(target, { recursive: true });
const page = join(scratch, "page");
await build({ logLevel: "warn", build: { outDir: page, emptyOutDir: true } });
const database = join(scratch, "shots.db");
const browser = await chromium.launch({
  executablePath: process.env.MIDSTREAM_CHROMIUM ?? "/usr/bin/chromium",
  args: CHROMIUM_ARGS,
});
try {
  for (const [name, state] of Object.entries(states)) {
    if (only.length && !only.includes(name)) {
      continue;
    }
    await shoot(name, state);
  }
} finally {
  await browser.close();
  await rm(scratch, { recursive: true, force: true });
}

/** Bring a page into a state once for each size, and take a picture of it in both themes. */
async function shoot(name, state) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    if (state.sizes && !state.sizes.includes(size)) {
      continue;
    }
    const isPhone = size === "phone";
    const server = await startServer({ database, page, speed: state.speed ?? 0 });
    const context = await browser.newContext({
      viewport,
      deviceScaleFactor: isPhone ? 2 : 1,
      hasTouch: isPhone,
      isMobile: isPhone,
      reducedMotion: "reduce",
    });
    const tab = await context.newPage();
    tab.on("console", (line) => line.type() === "error" && console.error(`${name}: ${line.text()}`));
    tab.on("pageerror", (error) => console.error(`${name}: ${error.stack}`));
    await tab.goto(server.url);
    tab.setDefaultTimeout(10_000);
    try {
      await state.go({ tab, server, context, isPhone });
    } catch (error) {
      console.error(`${name}, ${size}: ${error.message}`); // the picture shows how far it came
    }
    for (const theme of THEMES) {
      await tab.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      const file = join(target, `${name}-${size}-${theme}.png`);
      await tab.screenshot({ path: file, animations: "disabled" });
      console.log(file);
    }
    await context.close();
    await server.stop();
  }
}
