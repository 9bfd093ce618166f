/** Laws of a page that is loaded again, or was without a connection: nothing is lost, doubled or brought back. */
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { watchEveryFrame } from "./observers.js";
import { pageStage } from "./page_stage.js";
import {
  chatText,
  chooseForChat,
  composer,
  eventually,
  expectEqual,
  expectSame,
  messages,
  pathOf,
  said,
  say,
  untilAnswered,
  untilLive,
  untilOffline,
  untilQuiet,
} from "./view.js";

describeInBrowser("a page that is loaded again", () => {
  const here = pageStage();

  test("goes on in the middle of a word", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "a long word");
    await turn.say("It is a half-fin");
    await untilAnswered(page, "half-fin");
    await page.reload();
    await untilAnswered(page, "half-fin");
    await turn.say("ished word.");
    await untilAnswered(page, "It is a half-finished word.");
    await turn.done();
    await untilQuiet(page);
    expect(await messages(page, "Agent").count()).toBe(1);
    await expectEqual(page);
  });

  test("shows the conversation and the list before it has a connection, and says that it has none", async () => {
    const page = await here.open();
    await here.answer(page, "remember this", "I remember.");
    await untilQuiet(page);
    await expectEqual(page);
    here.proxy.cut("socket");
    await page.reload();
    await untilAnswered(page, "I remember.");
    await page.getByRole("navigation", { name: "Chats" }).getByText("remember this").waitFor();
    await untilOffline(page);
    here.proxy.heal();
    await expectEqual(page);
  });

  test("sends what was written offline once, over reloads, and from a new chat too", async () => {
    const page = await here.open();
    await untilLive(page);
    here.proxy.cut("socket");
    await untilOffline(page);
    await say(page, "written offline");
    await messages(page, "You").filter({ hasText: "Will be sent when connected" }).waitFor();
    for (let count = 0; count < 2; count++) {
      await page.reload();
      await untilOffline(page);
      await messages(page, "You").filter({ hasText: "written offline" }).waitFor();
    }
    await say(page, "and one more");
    const first = here.director.turn("written offline");
    here.proxy.heal();
    const turn = await first;
    await turn.inputs();
    await turn.say("I have it.");
    await turn.done();
    const rest = await Promise.race([here.director.turn("and one more"), untilQuiet(page)]);
    await rest?.done();
    await untilAnswered(page, "I have it.");
    await eventually(() => said(page)).toEqual(["written offline", "and one more"]);
    await page.reload();
    await untilAnswered(page, "I have it.");
    await untilQuiet(page);
    await expectEqual(page);
    expect(await said(page)).toEqual(["written offline", "and one more"]);
    const other = await here.openElsewhere(pathOf(page));
    await untilAnswered(other, "I have it.");
    expect(await said(other)).toEqual(["written offline", "and one more"]);
  });

  test("gives back what waited for a chat that was deleted meanwhile", async () => {
    const page = await here.open();
    await here.answer(page, "a short life", "Yes.");
    await untilAnswered(page, "Yes.");
    await untilQuiet(page);
    const other = await here.openElsewhere(pathOf(page));
    await untilAnswered(other, "Yes.");
    here.proxy.cut("socket");
    await untilOffline(page);
    await say(page, "written too late");
    await messages(page, "You").filter({ hasText: "Will be sent when connected" }).waitFor();
    await chooseForChat(other, /^Delete/);
    await other.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await eventually(() => pathOf(other)).toBe("/");
    here.proxy.heal();
    await page.getByText("is in the box of a new chat").waitFor();
    await page.getByRole("button", { name: "Begin a new chat" }).click();
    await eventually(() => composer(page).inputValue()).toBe("written too late");
  });

  test("gives back, whole, what is too long to be sent", async () => {
    const page = await here.open();
    await here.answer(page, "how long may it be", "Not too long.");
    await untilAnswered(page, "Not too long.");
    await untilQuiet(page);
    const long = `${"m".repeat(1_100_000)} the end`;
    await composer(page).evaluate((field, text) => {
      // as if it was pasted: to type it would take minutes
      const area = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value");
      area?.set?.call(field, text);
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }, long);
    await composer(page).press("Enter");
    await page.getByText("This is too big for the server").first().waitFor();
    await eventually(async () => (await composer(page).inputValue()) === long).toBe(true);
    expect(await said(page)).toEqual(["how long may it be"]);
  });

  test("still shows what waits in the queue, and can take it back", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "take your time");
    await turn.say("I take it.");
    await untilAnswered(page, "I take it.");
    for (const text of ["the next one", "the one after it"]) {
      await composer(page).fill(text);
      await page.getByRole("button", { name: /^How to send it/ }).click();
      await page.getByRole("menuitemradio", { name: /^After this answer/ }).click();
      await composer(page).press("Enter");
    }
    const waiting = page.getByRole("list", { name: "Messages that wait" }).getByRole("listitem");
    await eventually(() => waiting.filter({ hasText: "waits" }).count()).toBe(2);
    await page.reload();
    await eventually(() => waiting.filter({ hasText: "waits" }).count()).toBe(2);
    await waiting.filter({ hasText: "the one after it" }).waitFor();
    await page.getByRole("button", { name: "Cancel: the one after it" }).click();
    await eventually(() => waiting.count()).toBe(1);
    const next = here.director.turn("the next one");
    await turn.done();
    await (await next).done();
    await untilQuiet(page);
    await eventually(() => said(page)).toEqual(["take your time", "the next one"]);
    await expectEqual(page);
  });

  test("keeps what was typed and not sent", async () => {
    const page = await here.open();
    await here.answer(page, "hello", "Hello.");
    await untilQuiet(page);
    await composer(page).fill("half a thou");
    await page.reload();
    await eventually(() => composer(page).inputValue()).toBe("half a thou");
  });

  test("never brings back, at any frame, a history that was cleared while it was away", async () => {
    const page = await here.open();
    await here.answer(page, "tell me a secret", "The secret is out.");
    await untilQuiet(page);
    await expectEqual(page);
    const path = pathOf(page);
    here.proxy.cut("socket");
    await untilOffline(page);
    const other = await here.openElsewhere(path);
    await chooseForChat(other, /^Remove all messages/);
    await other.getByRole("dialog").getByRole("button", { name: "Remove all" }).click();
    await other.getByText("Nothing was said here yet.").waitFor();
    here.proxy.heal();
    await page.getByText("Nothing was said here yet.").waitFor();
    await untilLive(page);
    await expectEqual(page);
    const frames = await watchEveryFrame(page, "[aria-label=Messages]");
    await page.reload();
    await page.getByText("Nothing was said here yet.").waitFor();
    await here.answer(page, "and now?", "All is new.");
    await untilAnswered(page, "All is new.");
    expect((await frames()).filter((text) => text.includes("secret"))).toEqual([]);
    await untilAnswered(other, "All is new.");
    await expectSame(page, other);
  });
});

describeInBrowser("a page whose requests fail for a while", () => {
  const here = pageStage();

  test("goes on when a part of itself could not be loaded, and loads it later", async () => {
    const page = await here.open();
    await here.answer(page, "hello", "Hello.");
    await untilQuiet(page);
    here.proxy.cut("request");
    await chooseForChat(page, /^Check against the server/);
    await page
      .getByText(/^Could not check this page\./)
      .last()
      .waitFor();
    await page.keyboard.press("Control+k");
    await page
      .getByText(/could not be loaded/i)
      .last()
      .waitFor();
    await untilAnswered(page, "Hello.");
    // the conversation goes on meanwhile
    await here.answer(page, "still there?", "Still here.");
    await untilAnswered(page, "Still here.");
    here.proxy.heal();
    await expectEqual(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Commands" }).waitFor();
    await page.keyboard.press("Escape");
    expect(await chatText(page)).toContain("Still here.");
  });
});
