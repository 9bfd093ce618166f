/** Opening and leaving chats does not keep what was left. */
import { Client, type SocketMaker, systemEnvironment } from "midstream-client";
import type { Browser, CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { WebSocket } from "ws";
import { describeInBrowser, launch } from "../chromium.js";
import { devtools } from "../pages.js";
import { visit } from "./house.js";

const CHATS = 50;
const ROUNDS = 3;
/** Far more than a round may keep, and far less than fifty chats with their pages would be. */
const GROWTH_BYTES = 3_000_000;

interface Use {
  readonly heap: number;
  readonly nodes: number;
  readonly listeners: number;
}

const chats = Array.from({ length: CHATS }, (_, index) => `chat${index}`);

/** Have each chat answered once. */
async function fill(url: string): Promise<void> {
  const client = new Client(url, { environment: systemEnvironment(WebSocket as unknown as SocketMaker) });
  client.connect();
  for (const id of chats) {
    const handle = await client.open(id, { create: true }).prompt(`help, this is ${id}.`);
    await handle.finished();
  }
  await client.close();
}

/** Go through all chats, as by clicks in the list. */
async function round(page: Page): Promise<void> {
  for (const id of chats) {
    await page
      .locator(`a[href="/s/${id}"]`)
      .first()
      .evaluate((link: HTMLElement) => link.click());
    await page
      .locator("article", { hasText: `this is ${id}.` })
      .first()
      .waitFor();
  }
}

async function use(line: CDPSession): Promise<Use> {
  await line.send("HeapProfiler.collectGarbage");
  const [{ usedSize }, { nodes, jsEventListeners }] = await Promise.all([
    line.send("Runtime.getHeapUsage"),
    line.send("Memory.getDOMCounters"),
  ]);
  return { heap: usedSize, nodes, listeners: jsEventListeners };
}

describeInBrowser("a page that is used for long", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser?.close());

  test("does not grow by opening and leaving fifty chats", { timeout: 180_000 }, async () => {
    const uses: Use[] = [];
    await visit({ browser, built: inject("page"), size: "desktop" }, async ({ page, server }) => {
      await fill(server.url);
      const line = await devtools(page);
      await line.send("HeapProfiler.enable");
      for (let count = 0; count < ROUNDS; count++) {
        await round(page);
        uses.push(await use(line));
      }
    });
    for (const { heap, nodes, listeners } of uses) {
      console.log(
        `${(heap / 1e6).toFixed(1)} MB heap, ${nodes} nodes, ${listeners} listeners after ${CHATS} chats`,
      );
    }
    const [first, last] = [uses[0], uses.at(-1)];
    expect((last?.heap ?? 0) - (first?.heap ?? 0)).toBeLessThan(GROWTH_BYTES);
    expect((last?.nodes ?? 0) - (first?.nodes ?? 0)).toBeLessThan(2000);
    expect((last?.listeners ?? 0) - (first?.listeners ?? 0)).toBeLessThan(200);
  });
});
