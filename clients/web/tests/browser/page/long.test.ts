/** Laws of what is long: a chat of 5,000 messages, and an answer of 100 KB. Only what is in view costs anything. */
import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { PYTHON } from "../../../../typescript/tests/end_to_end/server.js";
import { describeInBrowser } from "../chromium.js";
import { devtools } from "../pages.js";
import { pageStage } from "./page_stage.js";
import { answerWith, eventually, expectEqual, messages, untilAnswered, untilQuiet } from "./view.js";

const COUNT = 5000;
const SESSION = "long";

/** The lines of `midstream import` for a chat of so many messages, of very different heights. */
function exported(count: number): string {
  const at = 1_780_000_000_000;
  const lines: unknown[] = [
    {
      format: "midstream.session",
      format_version: 1,
      version: count,
      session: {
        session_id: SESSION,
        title: "A long chat",
        revision: count,
        created_at: at,
        updated_at: at + count,
        message_count: count,
      },
    },
  ];
  for (let sequence = 1; sequence <= count; sequence++) {
    const isUser = sequence % 2 === 1;
    const lengths = "and so on, word after word ".repeat((sequence * 7919) % 40);
    lines.push({
      message: {
        message_id: `m${sequence}`,
        session_id: SESSION,
        sequence,
        revision: sequence,
        role: isUser ? "user" : "agent",
        visibility: "visible",
        created_at: at + sequence,
        updated_at: at + sequence,
        ...(!isUser && { state: "done" }),
        parts: [
          {
            type: "text",
            part_id: `p${sequence}`,
            sequence: 1,
            text: `Number ${sequence}. ${lengths}`,
            ...(!isUser && { state: "done" }),
          },
        ],
      },
    });
  }
  lines.push({ end: { turns: 0, messages: count, summaries: 0, inputs: 0 } });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

const scroller = (page: Page) => page.getByRole("region", { name: "Messages" });
const isInView = (page: Page, number: number): Promise<boolean> =>
  page.evaluate((start) => {
    const list = document.querySelector("[aria-label=Messages]")?.getBoundingClientRect();
    return [...document.querySelectorAll("article")].some((article) => {
      const { top, bottom } = article.getBoundingClientRect();
      return list && article.textContent?.startsWith(start) && bottom > list.top && top < list.bottom;
    });
  }, `Number ${number}. `);

interface Place {
  /** Whether earlier messages have come. */
  readonly loaded: boolean;
  /** Where the message is that is read. */
  readonly y: number;
}

/** Go near the top, and note at every frame where the message in the middle is, until earlier ones have come. */
const placesWhileLoading = (page: Page): Promise<Place[]> =>
  page.evaluate(async () => {
    const frame = () => new Promise(requestAnimationFrame);
    const list = document.querySelector("[aria-label=Messages]");
    if (!list) {
      throw new Error("There is no list of messages.");
    }
    const seen: Place[] = [];
    list.scrollTop = 1500;
    await frame();
    await frame();
    const middle = list.getBoundingClientRect().top + list.clientHeight / 2;
    const read = [...document.querySelectorAll("article")].find(
      (article) => article.getBoundingClientRect().bottom > middle,
    );
    const height = list.scrollHeight;
    let after = 0;
    while (after < 30 && seen.length < 300) {
      await frame();
      const loaded = list.scrollHeight > height + 1000;
      after += loaded ? 1 : 0;
      seen.push({ loaded, y: read?.isConnected ? read.getBoundingClientRect().top : Number.NaN });
    }
    return seen;
  });

describeInBrowser("a chat of 5,000 messages", () => {
  const here = pageStage();

  beforeAll(async () => {
    await here.server.kill();
    execFileSync(PYTHON, ["-m", "midstream.cli", "import", here.server.database, "-"], {
      input: exported(COUNT),
    });
    await here.server.begin();
  });

  test("opens at its end, in few elements", async () => {
    const page = await here.open(`/s/${SESSION}`);
    await eventually(() => isInView(page, COUNT)).toBe(true);
    expect(await page.locator("article").count()).toBeLessThan(40); // of 50 that are loaded
    expect(await page.locator("*").count()).toBeLessThan(2000);
    await expectEqual(page);
  });

  test("keeps what is read where it is, at every frame, while earlier messages are loaded", async () => {
    const page = await here.open(`/s/${SESSION}`);
    await eventually(() => isInView(page, COUNT)).toBe(true);
    here.proxy.delayMs = 250; // what is asked for comes later than the reader looks
    let places: Place[];
    do {
      places = await placesWhileLoading(page);
    } while (!places.some(({ loaded }) => loaded) || places[0]?.loaded); // what was asked for before came between
    here.proxy.delayMs = 0;
    const [first] = places;
    for (const { y } of places) {
      expect(Math.abs(y - (first?.y ?? 0))).toBeLessThanOrEqual(2);
    }
  });

  test("can be scrolled to its beginning, stays small, and jumps to the latest", async () => {
    const page = await here.open(`/s/${SESSION}`);
    await eventually(() => isInView(page, COUNT)).toBe(true);
    const most = await page.evaluate(async () => {
      const list = document.querySelector("[aria-label=Messages]");
      let most = 0;
      for (;;) {
        if (list) {
          list.scrollTop = 0;
        }
        await new Promise(requestAnimationFrame);
        const articles = [...document.querySelectorAll("article")];
        most = Math.max(most, articles.length);
        if (articles[0]?.textContent?.startsWith("Number 1. ")) {
          return most;
        }
      }
    });
    expect(most).toBeLessThan(100);
    await page.keyboard.press("Escape"); // leaves the composer
    await scroller(page).press("Home");
    await eventually(() => isInView(page, 1)).toBe(true);
    await expectEqual(page);
    await page.getByRole("button", { name: "Latest" }).click();
    await eventually(() => isInView(page, COUNT)).toBe(true);
    await page.getByRole("button", { name: "Latest" }).waitFor({ state: "detached" });
    expect(await page.locator("article").count()).toBeLessThan(100);
  });

  test("does not move who reads above when something new comes, and says so", async () => {
    const page = await here.open(`/s/${SESSION}`);
    await eventually(() => isInView(page, COUNT)).toBe(true);
    await scroller(page).evaluate((list) => {
      list.scrollTop -= 3000;
    });
    await page.getByRole("button", { name: "Latest" }).waitFor();
    const other = await here.openElsewhere(`/s/${SESSION}`);
    const place = await scroller(page).evaluate((list) => list.scrollTop);
    await here.answer(other, "something new", "Here it is.");
    await page.getByRole("button", { name: "2 new" }).waitFor();
    expect(await scroller(page).evaluate((list) => list.scrollTop)).toBe(place);
    await page.getByRole("button", { name: "2 new" }).click();
    await untilAnswered(page, "Here it is.");
  });
});

/** A piece of Markdown of 2 KB, with most of what there is. */
const piece = (number: number): string => `
## Part ${number}

${"Some **bold** words, a `name`, and [a link](https://example.com/). ".repeat(18)}

- one
- two

\`\`\`ts
const part = ${number};
\`\`\`

${"And more text, of which there is always more. ".repeat(12)}
`;

/** How many calls of functions the page makes during something. */
async function callsDuring(page: Page, act: () => Promise<void>): Promise<number> {
  const tools = await devtools(page);
  await tools.send("Profiler.enable");
  await tools.send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await act();
  const { result } = await tools.send("Profiler.takePreciseCoverage");
  await tools.send("Profiler.stopPreciseCoverage");
  await tools.detach();
  return result
    .filter(({ url }) => url.startsWith("http"))
    .flatMap(({ functions }) => functions)
    .reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0);
}

describeInBrowser("an answer of 100 KB", () => {
  const here = pageStage();

  test("costs as much at its end as at its beginning: nothing is parsed or drawn again", async () => {
    const page = await here.open();
    const turn = await here.begin(page, "write a book");
    let number = 0;
    const grow = async (count: number) => {
      for (const end = number + count; number < end; ) {
        number++;
        await turn.say(piece(number));
        await answerWith(page, `Part ${number}`).waitFor();
        await page.evaluate(() => new Promise(requestAnimationFrame));
      }
    };
    await grow(4);
    const early = await callsDuring(page, () => grow(4));
    await grow(38);
    const late = await callsDuring(page, () => grow(4));
    expect(early).toBeGreaterThan(0);
    expect(late / early).toBeLessThan(2);
    await turn.done();
    await untilQuiet(page);
    expect((await messages(page, "Agent").textContent())?.length).toBeGreaterThan(60_000);
    await expectEqual(page);
  });
});
