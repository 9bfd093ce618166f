/** Laws of the list of chats: each tab and device shows what happens in them, while it happens. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { type PageStage, pageStage } from "./page_stage.js";
import { choose, composer, eventually, pathOf, untilAnswered, untilLive, untilQuiet } from "./view.js";

const row = (page: Page, title: string) =>
  page.getByRole("navigation", { name: "Chats" }).getByRole("link", { name: new RegExp(`^${title}`) });
const rowMenu = (page: Page, title: string, item: RegExp) => choose(page, `What to do with ${title}`, item);

/** Two devices: one in a chat of its own, one that looks at the list. */
async function two(here: PageStage, title: string) {
  const first = await here.open();
  const second = await here.openElsewhere();
  await untilLive(second);
  const turn = await here.begin(first, title);
  await row(second, title).waitFor();
  return { first, second, turn };
}

describeInBrowser("the list of chats, in another tab", () => {
  const here = pageStage();

  test("shows a chat that begins, runs, asks and has something unread", async () => {
    const { first, second, turn } = await two(here, "Apples");
    await turn.say("They grow.");
    await row(second, "Apples").getByText("The agent is answering").waitFor();
    const approval = turn.approval("Pick them?");
    await row(second, "Apples").getByText("1 waiting for your answer").waitFor();
    await first.getByRole("button", { name: "Approve", exact: true }).click();
    await approval;
    await row(second, "Apples").getByText("The agent is answering").waitFor();
    await turn.done();
    await row(second, "Apples").getByText("Unread").waitFor();
    await untilQuiet(first);
    expect(await row(first, "Apples").getByText("Unread").count()).toBe(0);
    await row(second, "Apples").click();
    await untilAnswered(second, "They grow.");
    await second.getByRole("link", { name: "New chat" }).click();
    await row(second, "Apples").waitFor();
    expect(await row(second, "Apples").getByText("Unread").count()).toBe(0);
  });

  test("shows another title as soon as it has it, also in the open chat and the window", async () => {
    const { first, second, turn } = await two(here, "Pears");
    await turn.done();
    await row(second, "Pears").click();
    await rowMenu(first, "Pears", /^Rename/);
    await first.getByRole("textbox", { name: "Title of the chat" }).fill("Quinces");
    await first.keyboard.press("Enter");
    for (const page of [first, second]) {
      await row(page, "Quinces").waitFor();
      await page.getByRole("heading", { level: 1, name: "Quinces" }).waitFor();
      await eventually(() => page.title()).toContain("Quinces");
      expect(await row(page, "Pears").count()).toBe(0);
    }
    // and left by Esc it stays
    await rowMenu(second, "Quinces", /^Rename/);
    await second.getByRole("textbox", { name: "Title of the chat" }).fill("Nothing");
    await second.keyboard.press("Escape");
    await row(second, "Quinces").waitFor();
  });

  test("lets a chat go that is archived, and brings it back", async () => {
    const { first, second, turn } = await two(here, "Plums");
    await turn.done();
    await row(second, "Plums").click();
    await rowMenu(first, "Plums", /^Archive/);
    for (const page of [first, second]) {
      await row(page, "Plums").waitFor({ state: "detached" });
      await page.getByText("This chat is archived.").waitFor();
      expect(await composer(page).count()).toBe(0);
    }
    await second.getByRole("button", { name: "Archived" }).click();
    const archived = second.getByRole("navigation", { name: "Archived chats" });
    await archived.getByRole("link", { name: "Plums" }).waitFor();
    await second.getByRole("main").getByRole("button", { name: "Restore" }).click();
    await archived.getByRole("link", { name: "Plums" }).waitFor({ state: "detached" });
    await row(first, "Plums").waitFor();
    await composer(first).waitFor();
  });

  test("lets a chat go that is deleted, and says so where it is open", async () => {
    const { first, second, turn } = await two(here, "Cherries");
    await turn.done();
    await row(second, "Cherries").click();
    await second.waitForURL(/\/s\//);
    await rowMenu(first, "Cherries", /^Delete/);
    await first.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await second.getByRole("heading", { name: "This chat was deleted" }).waitFor();
    for (const page of [first, second]) {
      await row(page, "Cherries").waitFor({ state: "detached" });
    }
    await eventually(() => pathOf(first)).toBe("/");
    await second.reload();
    await second.getByRole("heading", { name: "There is no such chat" }).waitFor();
  });

  test("is found by words of its titles, and is whole again after a lost connection", async () => {
    const { first, turn } = await two(here, "Très grandes oranges");
    await turn.done();
    await here.answer(await here.openElsewhere(), "Lemons", "Sour.");
    await row(first, "Lemons").waitFor();
    const search = first.getByRole("searchbox", { name: "Search chats" });
    await search.fill("ORANGE tres");
    await row(first, "Lemons").waitFor({ state: "detached" });
    await row(first, "Très grandes oranges").waitFor();
    await search.press("Escape");
    await row(first, "Lemons").waitFor();
    here.proxy.cut("socket");
    await first.getByText("Offline.").waitFor();
    await here.answer(await here.openElsewhere(), "Limes", "Green.");
    here.proxy.heal();
    await row(first, "Limes").waitFor();
  });
});
