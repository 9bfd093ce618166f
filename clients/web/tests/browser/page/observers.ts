/** What happens in a page between two looks: noted there, frame by frame and change by change. */
import type { Page } from "playwright-core";

/** Note each change that is made to the answers that are there now, but for the last one. */
export async function watchOldAnswers(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(() => {
    const changes: string[] = [];
    Object.assign(globalThis, { changes });
    const old = [...document.querySelectorAll("article")].slice(0, -1);
    for (const article of old) {
      new MutationObserver((records) =>
        changes.push(...records.map((record) => `${record.type} in “${article.textContent}”`)),
      ).observe(article, { subtree: true, childList: true, characterData: true, attributes: true });
    }
    new MutationObserver(() => {
      if (old.some((article) => !article.isConnected)) {
        changes.push("an old answer was drawn anew");
      }
    }).observe(document.body, { subtree: true, childList: true });
  });
  return () => page.evaluate(() => (globalThis as unknown as { changes: string[] }).changes);
}

/** Note what text is shown of an element at every frame. */
export async function watchFrames(page: Page, selector: string): Promise<() => Promise<string[]>> {
  await page.evaluate((selector) => {
    const frames: string[] = [];
    Object.assign(globalThis, { frames });
    const look = () => {
      const shown = document.querySelector(selector)?.textContent ?? "";
      if (frames.at(-1) !== shown) {
        frames.push(shown);
      }
      requestAnimationFrame(look);
    };
    look();
  }, selector);
  return () => page.evaluate(() => (globalThis as unknown as { frames: string[] }).frames);
}

/** Note what is shown of an element at every frame from now on, in this page and after each reload of it. */
export async function watchEveryFrame(page: Page, selector: string): Promise<() => Promise<string[]>> {
  const frames: string[] = [];
  await page.exposeFunction("noteFrame", (text: string) => frames.push(text));
  await page.addInitScript((selector) => {
    let last = "";
    const look = () => {
      const shown = document.querySelector(selector)?.textContent ?? "";
      if (shown !== last) {
        last = shown;
        (globalThis as unknown as { noteFrame(text: string): void }).noteFrame(shown);
      }
      requestAnimationFrame(look);
    };
    look();
  }, selector);
  return async () => {
    await page.evaluate(() => new Promise(requestAnimationFrame));
    return frames;
  };
}

/** What a person saw where. */
export interface SeenPlace {
  readonly path: string;
  /** The title of the chat and its messages. */
  readonly text: string;
}

/** Note at every frame which chat the address names, and what is shown of a chat. */
export async function watchPlaces(page: Page): Promise<() => Promise<SeenPlace[]>> {
  await page.evaluate(() => {
    const places: SeenPlace[] = [];
    Object.assign(globalThis, { places });
    const look = () => {
      const text = document.querySelector("main")?.textContent ?? "";
      const last = places.at(-1);
      if (last?.text !== text || last.path !== location.pathname) {
        places.push({ path: location.pathname, text });
      }
      requestAnimationFrame(look);
    };
    look();
  });
  return () => page.evaluate(() => (globalThis as unknown as { places: SeenPlace[] }).places);
}
