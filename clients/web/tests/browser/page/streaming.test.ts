/** Laws of an answer that streams into several pages, over lines that break and a server that is killed. */
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { watchFrames, watchOldAnswers } from "./observers.js";
import { pageStage } from "./page_stage.js";
import {
  chatText,
  eventually,
  expectSame,
  pathOf,
  stopButton,
  untilAnswered,
  untilLive,
  untilOffline,
  untilQuiet,
} from "./view.js";

describeInBrowser("an answer that streams into two pages", () => {
  const here = pageStage();

  test("is equal in both after the line of one was cut in the middle", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "tell both of us");
    await turn.say("Both of us read **this** together. ");
    const second = await here.openElsewhere(pathOf(first));
    await untilAnswered(first, "read this together.");
    await untilAnswered(second, "read this together.");
    here.proxy.cut("socket");
    await untilOffline(first);
    await turn.say("Only one of us reads this now. ");
    await untilAnswered(second, "reads this now.");
    expect(await chatText(first)).not.toContain("reads this now.");
    here.proxy.heal();
    await untilAnswered(first, "reads this now.");
    await untilLive(first);
    await turn.say("And this reaches both.");
    await untilAnswered(first, "this reaches both.");
    await turn.done();
    await Promise.all([untilQuiet(first), untilQuiet(second)]);
    await expectSame(first, second);
  });

  test("ends in both, for the same reason, when the server is killed and started again", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "will you be killed?");
    await turn.say("This much was stored. ");
    await turn.commit();
    await turn.say("This was being writ");
    const second = await here.openElsewhere(pathOf(first));
    await untilAnswered(first, "being writ");
    await untilAnswered(second, "being writ");
    await here.server.kill();
    await Promise.all([untilOffline(first), untilOffline(second)]);
    await here.server.begin();
    for (const page of [first, second]) {
      await page.getByText("The server stopped.").waitFor();
      await untilQuiet(page);
      expect(await chatText(page)).toContain("This much was stored.");
    }
    await expectSame(first, second);
    // and the chat goes on
    await here.answer(second, "are you there again?", "Yes, I am.");
    await untilAnswered(first, "Yes, I am.");
    await expectSame(first, second);
  });

  test("is followed by turns 2 and 3 in a page that began neither", async () => {
    const first = await here.open();
    await here.answer(first, "turn one", "Answer one.");
    const second = await here.openElsewhere(pathOf(first));
    await untilAnswered(second, "Answer one.");
    for (const number of ["two", "three"]) {
      const turn = await here.begin(first, `turn ${number}`);
      await stopButton(second).waitFor();
      await turn.say(`Answer ${number} `);
      await untilAnswered(second, `Answer ${number}`);
      await turn.say("grows.");
      await untilAnswered(second, `Answer ${number} grows.`);
      await turn.done();
      await untilQuiet(second);
    }
    await expectSame(first, second);
  });

  test("is stopped for good from the page that did not begin it", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "talk for ever");
    await turn.say("I talk ");
    const second = await here.openElsewhere(pathOf(first));
    await untilAnswered(second, "I talk");
    await stopButton(second).click();
    await turn.ended; // the agent itself was stopped, not only what is shown of it
    for (const page of [first, second]) {
      await page.getByText(/^Stopped/).waitFor();
      await untilQuiet(page);
      await page.getByRole("button", { name: "Retry" }).waitFor();
    }
    await expectSame(first, second);
  });
});

const ANSWER = `## What grows

It has **bold words**, some \`code\`, and [a link](https://example.com/far/away).

1. one
2. two, *and more*

| this | that |
| ---- | ---- |
| 1    | 2    |

\`\`\`ts
const answer: number = 42;
\`\`\`

> And the end.`;

describeInBrowser("an answer that grows", () => {
  const here = pageStage();

  test("leaves the answers above it as they were drawn, over a lost connection too", async () => {
    const page = await here.open();
    await here.answer(page, "first", "Here is **one**, with `code`.");
    await untilQuiet(page);
    await here.answer(page, "second", "Here is two.");
    await untilQuiet(page);
    const turn = await here.begin(page, "third");
    await turn.say("Here is three");
    await untilAnswered(page, "Here is three");
    const changes = await watchOldAnswers(page);
    here.proxy.cut("socket");
    await untilOffline(page);
    await turn.say(", which went on");
    here.proxy.heal();
    await untilAnswered(page, "which went on");
    await untilLive(page);
    for (const word of [" and", " on", " and", " on."]) {
      await turn.say(word);
    }
    await untilAnswered(page, "which went on and on and on.");
    await turn.done();
    await untilQuiet(page);
    expect(await changes()).toEqual([]);
  });

  test("never shows less than it did, at any frame, and ends as it is when it is loaded", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "grow");
    await turn.say("Watch this:\n\n");
    await untilAnswered(page, "Watch this:");
    const shown = "article[aria-label^=Agent] > div";
    const frames = await watchFrames(page, shown);
    const pieces = ANSWER.match(/[\s\S]{1,3}/g) ?? [];
    for (const [at, piece] of pieces.entries()) {
      await turn.say(piece);
      await page.evaluate(() => new Promise(requestAnimationFrame));
      if (at === pieces.length >> 1) {
        here.proxy.cut("socket");
        await untilOffline(page);
      } else if (at === (pieces.length >> 1) + 9) {
        here.proxy.heal();
        await untilLive(page);
      }
    }
    await untilAnswered(page, "And the end.");
    await turn.done();
    await untilQuiet(page);
    const seen = await frames();
    expect(seen.length).toBeGreaterThan(20);
    for (const [at, text] of seen.entries()) {
      const before = at ? (seen[at - 1] ?? "") : "";
      expect(text.slice(0, before.length), `frame ${at}`).toBe(before);
    }
    const whole = await page.locator(shown).first().innerHTML();
    await page.reload();
    await untilAnswered(page, "And the end.");
    await eventually(() => page.locator(shown).first().innerHTML()).toBe(whole);
  });
});
