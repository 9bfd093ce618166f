/** Laws of hands: what keys do, what a phone shows, and what becomes of a message that is edited, copied or retried. */
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { pageStage } from "./page_stage.js";
import {
  chatText,
  composer,
  eventually,
  expectEqual,
  messages,
  pathOf,
  said,
  untilAnswered,
  untilQuiet,
} from "./view.js";

describeInBrowser("the keyboard", () => {
  const here = pageStage();

  test("Shift+Enter begins a line, Enter sends, and a word that is composed is not sent", async () => {
    const page = await here.open();
    await composer(page).focus();
    await page.keyboard.type("one line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("and another");
    expect(await composer(page).inputValue()).toBe("one line\nand another");
    await composer(page).dispatchEvent("keydown", { key: "Enter", isComposing: true });
    expect(pathOf(page)).toBe("/");
    const turn = here.director.turn("one line\nand another");
    await page.keyboard.press("Enter");
    await (await turn).done();
    await untilQuiet(page);
    expect(await said(page)).toEqual(["one line\nand another"]);
    expect(await composer(page).inputValue()).toBe("");
    await page.keyboard.press("Enter");
    expect(await said(page)).toHaveLength(1);
  });

  test("a double click on an example begins one chat", async () => {
    const page = await here.open();
    const chats = page.getByRole("navigation", { name: "Chats" }).getByRole("link");
    const example = "Take my order for a pizza";
    const turn = here.director.turn(example);
    await page.getByRole("button", { name: new RegExp(`^${example} `) }).dblclick();
    await (await turn).done();
    await untilQuiet(page);
    await eventually(() => chats.filter({ hasText: example }).count()).toBe(1);
    await here.answer(page, "and one more", "It is the last.");
    await untilAnswered(page, "It is the last.");
    expect(await chats.filter({ hasText: example }).count()).toBe(1);
  });

  test("Ctrl+K goes to a chat by name and closes by Esc, and / leads to where one writes", async () => {
    const page = await here.open();
    await here.answer(page, "Violets", "Blue.");
    await untilAnswered(page, "Blue.");
    const path = pathOf(page);
    await page.keyboard.press("Control+k");
    const palette = page.getByRole("dialog", { name: "Commands" });
    await palette.waitFor();
    await page.keyboard.press("Escape");
    await palette.waitFor({ state: "detached" });
    await page.keyboard.press("Control+k"); // known by now: it takes what is typed at once
    await page.keyboard.type("new chat");
    await page.getByRole("option", { name: "New chat", selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await palette.waitFor({ state: "detached" });
    expect(pathOf(page)).toBe("/");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("viol");
    await page.getByRole("option", { name: "Violets", selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await eventually(() => pathOf(page)).toBe(path);
    await untilAnswered(page, "Blue.");
    await composer(page).focus();
    await page.keyboard.type("kept");
    await page.keyboard.press("Escape");
    expect(await composer(page).evaluate((element) => element === document.activeElement)).toBe(false);
    await page.keyboard.press("/");
    expect(await composer(page).evaluate((element) => element === document.activeElement)).toBe(true);
    expect(await composer(page).inputValue()).toBe("kept");
  });

  test("an approval can be given by keys alone, and the focus is not lost with it", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "ask me");
    const approval = turn.approval("Really?");
    const approve = page.getByRole("button", { name: "Approve", exact: true });
    await approve.focus();
    await page.keyboard.press("Enter");
    expect(await approval).toEqual({ approved: true, reason: null });
    await approve.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.closest("article") !== null)).toBe(true);
    await turn.done();
  });
});

describeInBrowser("a phone", () => {
  const here = pageStage();
  const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

  test("has the list as a sheet, which closes by a choice and by Esc, and nothing is wider than it", async () => {
    const page = await here.openElsewhere("/", PHONE);
    await here.answer(
      page,
      "Ferns",
      `Wide: ${"x".repeat(300)}\n\n| a | b |\n| - | - |\n| ${"long ".repeat(60)} | c |`,
    );
    await untilQuiet(page);
    expect(await page.getByRole("navigation", { name: "Chats" }).count()).toBe(0);
    const sheet = page.getByRole("dialog", { name: "Chats" });
    const open = page.getByRole("button", { name: "Open the list of chats" });
    await open.tap();
    await sheet.getByRole("link", { name: "New chat" }).tap();
    await sheet.waitFor({ state: "detached" });
    expect(pathOf(page)).toBe("/");
    await open.tap();
    await sheet.getByRole("link", { name: "Ferns" }).tap();
    await sheet.waitFor({ state: "detached" });
    await untilAnswered(page, "Wide:");
    await open.tap();
    await sheet.waitFor();
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await expectEqual(page);
  });
});

describeInBrowser("a message", () => {
  const here = pageStage();

  test("that is edited goes on in a copy, and the chat stays as it was", async () => {
    const page = await here.open();
    await here.answer(page, "what is red?", "A rose.");
    await untilQuiet(page);
    await here.answer(page, "what is blue?", "A violet.");
    await untilQuiet(page);
    const path = pathOf(page);
    await messages(page, "You").last().hover();
    await page.getByRole("button", { name: "Edit and send again" }).last().click();
    const field = page.getByRole("textbox", { name: "Edit the message" });
    expect(await field.inputValue()).toBe("what is blue?");
    const edited = here.director.turn("what is green?");
    await field.fill("what is green?");
    await field.press("Enter");
    const turn = await edited;
    await turn.say("Grass.");
    await turn.done();
    await untilAnswered(page, "Grass.");
    await untilQuiet(page);
    expect(pathOf(page)).not.toBe(path);
    expect(await said(page)).toEqual(["what is red?", "what is green?"]);
    expect(await chatText(page)).toContain("A rose.");
    expect(await chatText(page)).not.toContain("violet");
    await expectEqual(page);
    await page.getByRole("link", { name: "Copied from another chat up to here" }).click();
    await eventually(() => pathOf(page)).toBe(path);
    await eventually(() => said(page)).toEqual(["what is red?", "what is blue?"]);
    await expectEqual(page);
  });

  test("that was the first one goes on in a new chat, and Esc leaves it as it is", async () => {
    const page = await here.open();
    await here.answer(page, "the very first", "One.");
    await untilQuiet(page);
    const path = pathOf(page);
    const field = page.getByRole("textbox", { name: "Edit the message" });
    await page.getByRole("button", { name: "Edit and send again" }).click();
    await field.press("Escape");
    await field.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Edit and send again" }).click();
    const edited = here.director.turn("another first");
    await field.fill("another first");
    await field.press("Enter");
    await (await edited).done();
    await eventually(() => said(page)).toEqual(["another first"]);
    expect(pathOf(page)).not.toBe(path);
  });

  test("that failed can be sent again", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "may fail");
    await turn.say("Half an ans");
    await turn.fail("The model is tired.");
    await page.getByText("The model is tired.").waitFor();
    const again = here.director.turn("may fail");
    await page
      .getByRole("button", { name: /^(Try again|Retry)$/ })
      .last()
      .click();
    const second = await again;
    await second.say("A whole answer.");
    await second.done();
    await untilAnswered(page, "A whole answer.");
    await untilQuiet(page);
    expect(await chatText(page)).toContain("Half an ans");
    await expectEqual(page);
  });
});
