/** Laws of a page that is loaded again: what it had is there at once, and nothing is lost or doubled. */
import { expect, test } from "vitest";
import { describeInBrowser } from "./chromium.js";
import { until } from "./pages.js";
import { expectEqual, newSession, prompts, say, stage, untilLive } from "./stage.js";

describeInBrowser("a page that is loaded again", () => {
  const here = stage(1);

  test("shows the conversation at once, in mid-turn, and catches up by its cursor", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    await page.evaluate(() => void fixture.session.prompt("tell me a story"));
    await page.waitForFunction(() => fixture.text().length > 200);
    const before = await page.evaluate(() => fixture.text());
    await page.reload();
    await page.evaluate(() => fixture.session.restored);
    const restored = await page.evaluate(() => fixture.restored);
    expect(restored.messages).toBe(2);
    expect(restored.state).not.toBe("live");
    await untilLive(page);
    // by its cursor: only what was missed came, and the text grew from where it was
    expect(await page.evaluate(() => fixture.modes)).toEqual(["replay"]);
    const after = await page.evaluate(() => fixture.text());
    expect(after.startsWith(before.slice(0, 100))).toBe(true);
    await page.evaluate(() => fixture.session.stop());
    await expectEqual(page);
  });

  test("shows the conversation without any connection", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    await page.evaluate(async () => (await fixture.session.prompt("hello")).finished());
    const before = await page.evaluate(() => fixture.text());
    here.proxy.cut("socket");
    await page.reload();
    await page.evaluate(() => fixture.session.restored);
    expect(await page.evaluate(() => fixture.text())).toBe(before);
    expect(await page.textContent("#text")).toBe(before);
    here.proxy.heal();
    await expectEqual(page);
  });

  test("sends a prompt that was written offline exactly once", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    here.proxy.cut("socket");
    await page.waitForFunction(() => fixture.session.state === "offline");
    await page.evaluate(async () => {
      await fixture.session.prompt("written offline");
      await fixture.session.prompt("and one more");
    });
    for (let count = 0; count < 2; count++) {
      await page.reload();
      await page.waitForFunction(() => fixture.session.pending.length === 2);
    }
    here.proxy.heal();
    await page.waitForFunction(
      () => fixture.session.messages.filter(({ role }) => role === "user").length > 1,
    );
    await untilLive(page);
    expect(await prompts(page)).toEqual(["written offline", "and one more"]);
    await page.reload();
    await untilLive(page);
    expect(await page.evaluate(() => fixture.restored.pending)).toBe(0);
    expect(await prompts(page)).toEqual(["written offline", "and one more"]);
    await expectEqual(page);
  });

  test("sends a prompt once, too, whose answer was lost on its way", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    // it gets through, and nothing comes back any more
    const [line] = here.proxy.open("socket");
    const sent = line?.toServer ?? 0;
    here.proxy.delayMs = 300;
    await page.evaluate(() => void fixture.session.prompt("did you get this?"));
    await until(() => (line?.toServer ?? 0) > sent, "the prompt is on its way");
    here.proxy.cut("socket");
    here.proxy.delayMs = 0;
    await page.reload();
    here.proxy.heal();
    await untilLive(page);
    await page.waitForFunction(() => fixture.session.pending.length === 0);
    expect(await prompts(page)).toEqual(["did you get this?"]);
    await expectEqual(page);
  });

  test("does not bring a history back that was cleared meanwhile", async () => {
    const sessionId = newSession();
    const page = await here.open(sessionId);
    await untilLive(page);
    await say(page, "to be forgotten");
    const address = page.url();
    await page.goto("about:blank");
    const other = await here.open(sessionId);
    await untilLive(other);
    await other.evaluate(() => fixture.session.clear());
    await other.waitForFunction(() => fixture.session.messages.length === 0);
    here.proxy.cut("socket");
    await other.goto("about:blank");
    // what this page has of it is old, and it cannot know yet; once it can, nothing is left, on disk neither
    await page.goto(address);
    await page.evaluate(() => fixture.session.restored);
    here.proxy.heal();
    await untilLive(page);
    expect(await prompts(page)).toEqual([]);
    await expectEqual(page);
    await page.reload();
    await page.evaluate(() => fixture.session.restored);
    expect(await page.evaluate(() => fixture.restored.messages)).toBe(0);
  });
});
