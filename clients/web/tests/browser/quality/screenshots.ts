/**
 * Writes pictures of the page's main states, for people to look at, and a sheet with all of them.
 *
 *   npm run screenshots -- [folder] [state ...]
 *
 * It builds the page, and starts a server and Chromium by itself. MIDSTREAM_PYTHON names the Python that runs
 * the server, MIDSTREAM_CHROMIUM the browser.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launch, missing } from "../chromium.js";
import { buildPage, SIZE_NAMES, SIZES, type Size, THEMES, visit } from "./house.js";
import { type PageState, settled, states } from "./states.js";

const fileName = (state: string, size: Size, theme: string): string =>
  `${state.replaceAll(" ", "-")}-${size}-${theme}.png`;

/** The page in its state, as it is now, in both themes. */
async function shoot(page: Page, folder: string, name: string, size: Size): Promise<void> {
  await settled(page);
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const path = join(folder, fileName(name, size, colorScheme));
    await page.screenshot({ path, animations: "disabled", caret: "hide" });
    console.log(path);
  }
}

/** A state that cannot be reached is pictured as far as it came, and is said. */
async function shootState(browser: Browser, built: string, folder: string, name: string): Promise<string[]> {
  const state = states[name] as PageState;
  const wrong: string[] = [];
  for (const size of state.sizes ?? SIZE_NAMES) {
    const complaints = await visit({ browser, built, size, flags: state.flags ?? [] }, async (visit) => {
      await state.go(visit).catch((error: Error) => wrong.push(`${name}, ${size}: ${error.message}`));
      await shoot(visit.page, folder, name, size);
    });
    wrong.push(...complaints.map((complaint) => `${name}, ${size}: ${complaint}`));
  }
  return wrong;
}

function contactSheet(names: readonly string[]): string {
  const picture = (name: string, size: Size, theme: string): string => {
    const file = fileName(name, size, theme);
    const width = size === "phone" ? 195 : 512;
    const height = (width * SIZES[size].height) / SIZES[size].width;
    return `<a href="${file}"><img src="${file}" alt="${name}, ${size}, ${theme}" width="${width}" height="${height}" loading="lazy"></a>`;
  };
  const rows = names.map((name) => {
    const pictures = (states[name]?.sizes ?? SIZE_NAMES).flatMap((size) =>
      THEMES.map((theme) => picture(name, size, theme)),
    );
    return `<section><h2>${name}</h2><div>${pictures.join("")}</div></section>`;
  });
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>midstream: the page's states</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 24px; background: #eee; color: #222 }
h2 { font-size: 14px; margin: 24px 0 8px }
div { display: flex; flex-wrap: wrap; gap: 12px; align-items: start }
img { display: block; border: 1px solid #ccc }
</style>
<h1>The page's states</h1>
${rows.join("\n")}
</html>
`;
}

/** Write the pictures of these states, or of all; returns how many things went wrong. */
export async function main([target = "screenshots", ...only]: readonly string[]): Promise<number> {
  if (missing) {
    throw new Error(`No pictures can be taken: ${missing}`);
  }
  const unknown = only.filter((name) => !(name in states));
  if (unknown.length) {
    throw new Error(`No such state: ${unknown.join(", ")}. There are: ${Object.keys(states).join(", ")}.`);
  }
  const names = only.length ? only : Object.keys(states);
  const folder = resolve(target);
  await mkdir(folder, { recursive: true });
  const [built, browser] = await Promise.all([buildPage(), launch()]);
  const wrong: string[] = [];
  try {
    for (const name of names) {
      wrong.push(...(await shootState(browser, built.folder, folder, name)));
    }
  } finally {
    await browser.close();
    await built.remove();
  }
  if (!only.length) {
    await writeFile(join(folder, "index.html"), contactSheet(names));
    console.log(join(folder, "index.html"));
  }
  for (const line of wrong) {
    console.error(line);
  }
  return wrong.length;
}
