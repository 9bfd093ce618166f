/** Laws of going from chat to chat while answers stream: each shows its own, and none of them stops. */
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { watchPlaces } from "./observers.js";
import { pageStage } from "./page_stage.js";
import { expectEqual, pathOf, stopButton, untilAnswered, untilQuiet } from "./view.js";

describeInBrowser("switching between chats", () => {
  const here = pageStage();

  test("in the middle of two turns never shows the text of one under the other", async () => {
    const page = await here.open();
    const ant = await here.begin(page, "ant begins");
    await ant.say("ant ant");
    await untilAnswered(page, "ant ant");
    const antPath = pathOf(page);
    await page.getByRole("link", { name: "New chat" }).click();
    const bee = await here.begin(page, "bee begins");
    await bee.say("bee bee");
    await untilAnswered(page, "bee bee");
    const beePath = pathOf(page);
    const places = await watchPlaces(page);
    const link = {
      ant: page.getByRole("link", { name: /^ant begins/ }),
      bee: page.getByRole("link", { name: /^bee begins/ }),
    };
    for (let round = 0; round < 4; round++) {
      await ant.say(` ant${round}`);
      await link.ant.click();
      await bee.say(` bee${round}`);
      await untilAnswered(page, `ant${round}`);
      await ant.say(` ant${round}, too`);
      await link.bee.click();
      await untilAnswered(page, `bee${round}`);
    }
    await page.goBack();
    await untilAnswered(page, "ant3, too");
    await page.goForward();
    await untilAnswered(page, "bee3");
    const seen = await places();
    expect(seen.map(({ path }) => path)).toEqual(expect.arrayContaining([antPath, beePath]));
    for (const { path, text } of seen) {
      expect(text).not.toContain(path === antPath ? "bee" : "ant");
    }
    // both go on: neither navigation nor unmounting has stopped them
    await bee.say(" and the bee ends.");
    await bee.done();
    await untilAnswered(page, "and the bee ends.");
    await untilQuiet(page);
    await expectEqual(page);
    await link.ant.click();
    await stopButton(page).waitFor();
    await ant.say(" and the ant ends.");
    await ant.done();
    await untilAnswered(page, "and the ant ends.");
    await untilQuiet(page);
    await expectEqual(page);
  });

  test("and leaving the page altogether stops no turn", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "go on without me");
    await turn.say("I begin. ");
    await untilAnswered(page, "I begin.");
    const path = pathOf(page);
    await page.goto("about:blank");
    await page.close();
    await turn.say("Nobody looks. ");
    const back = await here.open(path);
    await untilAnswered(back, "Nobody looks.");
    await stopButton(back).waitFor();
    await turn.say("Welcome back.");
    await turn.done();
    await untilAnswered(back, "Welcome back.");
    await untilQuiet(back);
    await expectEqual(back);
  });
});
