/** What a person sees on the chat page, and does there: by roles, names and texts. */
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { PATIENCE_MS } from "../pages.js";

/** Wait until something that is looked at again and again is so. */
export const eventually = <T>(look: () => Promise<T> | T, what?: string) =>
  expect.poll(look, { timeout: PATIENCE_MS, interval: 20, ...(what && { message: what }) });

export const composer = (page: Page): Locator => page.getByRole("textbox", { name: "Message", exact: true });

/** Write a message and send it. */
export async function say(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

/** The messages of the chat that are drawn: only those near what is in view. */
export const messages = (page: Page, by: "You" | "Agent"): Locator =>
  page.getByRole("article", { name: new RegExp(`^${by}, `) });

/** Where a text stands in an answer; the last one, where there are several. */
export const answerWith = (page: Page, text: string): Locator =>
  messages(page, "Agent").filter({ hasText: text }).last();

/** Wait until this text is in an answer. */
export const untilAnswered = (page: Page, text: string): Promise<void> => answerWith(page, text).waitFor();

/** What people's messages say, in order. */
export const said = (page: Page): Promise<string[]> =>
  messages(page, "You").locator("> [dir]").allInnerTexts();

/** Where a page is, to open it elsewhere. */
export const pathOf = (page: Page): string => new URL(page.url()).pathname;

/** All text of the chat, without what is around it. */
export const chatText = (page: Page): Promise<string | null> =>
  page.getByRole("region", { name: "Messages" }).textContent();

export const stopButton = (page: Page): Locator => page.getByRole("button", { name: "Stop the answer" });

/** Wait until no turn runs, and nothing is written any more. */
export async function untilQuiet(page: Page): Promise<void> {
  await stopButton(page).waitFor({ state: "hidden" });
  await page.locator("[data-caret]").waitFor({ state: "detached" });
}

/** What the page says of its connection; nothing while it is connected. */
export const connection = (page: Page): Locator => page.getByText(/^(Connecting…|Offline\.|Disconnected)/);
export const untilOffline = (page: Page): Promise<void> => page.getByText("Offline.").waitFor();
export const untilLive = (page: Page): Promise<void> => connection(page).waitFor({ state: "hidden" });

/** Choose an item of a menu. */
export async function choose(page: Page, menu: string, item: RegExp): Promise<void> {
  await page.getByRole("button", { name: menu, exact: true }).click();
  await page.getByRole("menuitem", { name: item }).click();
}

const CHAT_MENU = "What to do with this chat";
export const chooseForChat = (page: Page, item: RegExp): Promise<void> => choose(page, CHAT_MENU, item);

/** The notice at the page's edge. */
export const notice = (page: Page): Locator =>
  page.getByRole("button", { name: "Close this notice" }).locator("..");

async function closeNotice(page: Page): Promise<void> {
  const close = page.getByRole("button", { name: "Close this notice" });
  if (await close.isVisible()) {
    await close.click();
  }
  await close.waitFor({ state: "hidden" });
}

/** The page checks itself against the server by digests, as a person can ask it to, and says that they are equal. */
export async function expectEqual(page: Page): Promise<void> {
  await untilLive(page);
  await closeNotice(page);
  await chooseForChat(page, /^Check against the server/);
  const text = await notice(page).textContent();
  expect(text).toMatch(/^Checked \d+ messages? by digest: this page equals the server\.$/);
  await closeNotice(page);
}

/** Several pages are equal to the server by digest, and show the same. */
export async function expectSame(...pages: readonly Page[]): Promise<void> {
  for (const page of pages) {
    await expectEqual(page);
  }
  const [first, ...others] = pages;
  const shown = first && (await chatText(first));
  for (const page of others) {
    await eventually(() => chatText(page), "all pages show the same").toBe(shown);
  }
}
