/** Laws of two tabs of one browser: they share what is kept, and neither doubles nor breaks what the other has. */
import { expect, test } from "vitest";
import { describeInBrowser } from "./chromium.js";
import { expectEqual, newSession, prompts, say, stage, untilLive } from "./stage.js";

describeInBrowser("two tabs of one browser", () => {
  const here = stage(0);

  test("send a prompt that was written offline in one of them exactly once", async () => {
    const sessionId = newSession();
    const first = await here.open(sessionId);
    await untilLive(first);
    here.proxy.cut("socket");
    await first.waitForFunction(() => fixture.session.state === "offline");
    await first.evaluate(async () => {
      await fixture.session.prompt("one");
      await fixture.session.prompt("two");
    });
    // the second finds both in the store, and takes them for its own
    const second = await here.open(sessionId);
    await second.waitForFunction(() => fixture.session.pending.length === 2);
    here.proxy.heal();
    for (const page of [first, second]) {
      await untilLive(page);
      await page.waitForFunction(() => fixture.session.pending.length === 0);
    }
    await say(second, "three");
    for (const page of [first, second]) {
      await page.waitForFunction(
        () => fixture.session.messages.filter(({ role }) => role === "user").length >= 3,
      );
      expect(await prompts(page)).toEqual(["one", "two", "three"]);
      await expectEqual(page);
    }
    await first.reload();
    await untilLive(first);
    expect(await first.evaluate(() => fixture.restored.pending)).toBe(0);
    expect(await prompts(first)).toEqual(["one", "two", "three"]);
  });

  test("keep one copy that is never a mixture, whoever wrote it last", async () => {
    const sessionId = newSession();
    const pages = [await here.open(sessionId), await here.open(sessionId)];
    for (let turn = 0; turn < 3; turn++) {
      for (const [index, page] of pages.entries()) {
        await untilLive(page);
        await say(page, `turn ${turn} of ${index}`);
        await page.reload();
      }
    }
    for (const page of pages) {
      await page.evaluate(() => fixture.session.restored);
      // whatever it began with was a state of the session, so that it could go on from there
      await untilLive(page);
      expect(await page.evaluate(() => fixture.modes)).not.toContain("reset");
      expect(await prompts(page)).toHaveLength(6);
      await expectEqual(page);
    }
  });
});
