/** The law of a hostile answer: whatever a model, a tool, a file or a title says, it is text, and nothing of it runs. */
import type { BrowserContext, Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { pageStage } from "./page_stage.js";
import { chatText, eventually, messages, pathOf, say, untilAnswered, untilQuiet } from "./view.js";

/** Where nothing of the page may ever go. */
const EVIL = "https://evil.example";
const RUN = "globalThis.hacked=true;alert(1)";

/** Ways in, each of which has worked somewhere. */
const WAYS = [
  `<img src=x onerror="${RUN}">`,
  `<img src="${EVIL}/pixel.png">`,
  `<script>${RUN}</script>`,
  `<script src="${EVIL}/script.js"></script>`,
  `<svg onload="${RUN}"><a xlink:href="javascript:${RUN}"><text>x</text></a></svg>`,
  `<iframe srcdoc="<script>parent.hacked=true</script>"></iframe>`,
  `<a href="javascript:${RUN}" onclick="${RUN}">a link of HTML</a>`,
  `<form action="${EVIL}"><input name=a><button>go</button></form>`,
  `<style>body{background:url(${EVIL}/style.png)}</style>`,
  `<link rel=stylesheet href="${EVIL}/style.css"><meta http-equiv=refresh content="0;url=${EVIL}">`,
  `<details open ontoggle="${RUN}"><summary>x</summary></details><video><source onerror="${RUN}"></video>`,
  `<math><mtext></mtext><mglyph><style><img src=x onerror="${RUN}"></style></mglyph></math>`,
  `--><!-- --!><img src=x onerror="${RUN}">`,
];

/** The same by way of Markdown. */
const MARKDOWN = [
  ...WAYS,
  `[one](javascript:${RUN})`,
  `[two](JaVaScRiPt:${RUN})`,
  `[three](java&#x73;cript:${RUN})`,
  `[four](&#1;javascript:${RUN})`,
  `[five](data:text/html,<script>${RUN}</script>)`,
  `[six](vbscript:${RUN} "title\\" onclick=${RUN}")`,
  `[seven](<java\tscript:${RUN}>)`,
  `[eight][ref]`,
  `[ref]: javascript:${RUN}`,
  `<javascript:${RUN}>`,
  `![nine](javascript:${RUN})`,
  `![ten](${EVIL}/pixel.png)`,
  `![eleven](data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='${RUN}'/>)`,
  `| a | b |\n| - | - |\n| ${WAYS[0]} | [c](javascript:${RUN}) |`,
  `\`\`\`html"onload=${RUN}\n${WAYS.join("\n")}\n\`\`\``,
  `- [ ] ${WAYS[0]}\n  > ${WAYS[2]}`,
  `# ${WAYS[4]}`,
].join("\n\n");

/** Everything that a page does and may not, from now on. */
async function guard(context: BrowserContext, origin: string): Promise<string[]> {
  const wrong: string[] = [];
  await context.exposeFunction("tellTest", (text: string) => wrong.push(text));
  await context.addInitScript(() => {
    const tell = (text: string) => (globalThis as unknown as { tellTest(text: string): void }).tellTest(text);
    for (const name of ["alert", "confirm", "prompt", "open"] as const) {
      Object.assign(globalThis, { [name]: () => tell(`${name} was called`) });
    }
    document.addEventListener("securitypolicyviolation", (event) =>
      tell(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  context.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(data|blob):/.test(url)) {
      wrong.push(`request: ${url}`);
    }
  });
  context.on("page", (page) => page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`)));
  return wrong;
}

/** What in the page could run, or lead where a model wants, by any attribute. */
const dangers = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const found: string[] = [];
    for (const element of document.body.querySelectorAll("*")) {
      if (/^(script|iframe|object|embed|form|style|link|meta|base|math)$/i.test(element.tagName)) {
        found.push(element.outerHTML);
      }
      for (const { name, value } of element.attributes) {
        const isScript = /^(href|src|xlink:href|action|formaction|srcdoc)$/i.test(name)
          ? /^\W*(javascript|vbscript|data:text)/i.test(value)
          : /^on/i.test(name);
        if (isScript) {
          found.push(`${element.tagName} ${name}=${value}`);
        }
      }
    }
    return (globalThis as { hacked?: boolean }).hacked ? [...found, "it ran"] : found;
  });

/** Open all that is folded, so that everything is drawn; by keys, since what is opened moves the rest. */
async function unfold(page: Page): Promise<void> {
  const folded = page.locator("[aria-label=Messages] [aria-expanded=false]");
  while (await folded.count()) {
    await folded.first().press("Enter");
  }
}

describeInBrowser("HTML and scripts", () => {
  const here = pageStage();

  test("in an answer, as it streams and when it is loaded, are text", async () => {
    const wrong = await guard(here.context, here.proxy.pageUrl);
    const page = await here.open();
    const turn = await here.begin(page, "be evil");
    for (const piece of MARKDOWN.match(/[\s\S]{1,40}/g) ?? []) {
      await turn.say(piece);
      expect(await dangers(page)).toEqual([]);
    }
    await turn.say("\n\nThe end.");
    await untilAnswered(page, "The end.");
    await turn.done();
    await untilQuiet(page);
    expect(await chatText(page)).toContain(`onerror="${RUN}"`);
    for (const name of ["one", "two", "three", "four", "five", "a link of HTML"]) {
      for (const link of await page.getByText(name, { exact: true }).all()) {
        await link.click();
      }
    }
    await page.reload();
    await untilAnswered(page, "The end.");
    expect(await dangers(page)).toEqual([]);
    // what is left of links are addresses that a person can read, and that learn nothing of the page
    const links = await page
      .locator("article a")
      .evaluateAll((all) => all.map((link) => `${link.getAttribute("target")} ${link.getAttribute("rel")}`));
    expect(new Set(links)).toEqual(new Set(["_blank noopener noreferrer nofollow"]));
    expect(wrong).toEqual([]);
  });

  test("in what tools, files, sources, questions and errors say are text", async () => {
    const wrong = await guard(here.context, here.proxy.pageUrl);
    const page = await here.open();
    const all = WAYS.join(" ");
    const title = `${WAYS[0]}${WAYS[2]}`;
    const turn = await here.begin(page, all);
    await turn.think(MARKDOWN);
    await turn.tool(`tool${WAYS[0]}`.slice(0, 60), all);
    await turn.toolInput(`{"html": ${JSON.stringify(all)}`);
    await turn.toolReady({ html: all, [WAYS[0] ?? ""]: WAYS });
    await turn.toolRuns();
    await turn.toolDone({ html: all, deep: { list: WAYS } });
    await turn.tool("fails", "Fails", all);
    await turn.toolRuns();
    await turn.toolFails(all);
    await turn.file(`javascript:${RUN}`, "image/png", `${WAYS[0]}.png`);
    await turn.file(`data:text/html,${WAYS[2]}`, "text/html", `page${WAYS[2]}.html`);
    await turn.file(
      `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='${RUN}'/>`,
      "image/svg+xml",
      "x.svg",
    );
    await turn.file(`${EVIL}/report.pdf`, "application/pdf", "report.pdf");
    await turn.source(`javascript:${RUN}`, all);
    await turn.source(`${EVIL}/page`, all);
    await turn.document("text/html", all, `${WAYS[0]}`);
    await turn.data("demo.notes", WAYS);
    await turn.data(`x${WAYS[0]}`, { html: WAYS });
    await turn.action(title, all);
    await turn.error(all);
    const approval = turn.approval(title, all);
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await unfold(page);
    expect(await dangers(page)).toEqual([]);
    await page.getByRole("button", { name: "Approve", exact: true }).press("Enter");
    await approval;
    const answer = turn.ask(title, all, WAYS);
    await page.getByRole("radio").first().press("Space");
    await page.getByRole("button", { name: "Send answer" }).press("Enter");
    expect(await answer).toBe(WAYS[0]);
    await turn.fail(all);
    await untilQuiet(page);
    await unfold(page);
    expect(await dangers(page)).toEqual([]);
    expect(wrong).toEqual([]);
  });

  test("in titles, and in what people write, are text", async () => {
    const wrong = await guard(here.context, here.proxy.pageUrl);
    const page = await here.open();
    await here.answer(page, MARKDOWN, "So what.");
    await untilAnswered(page, "So what.");
    const title = `${WAYS[0]}${WAYS[2]}`;
    await page.getByRole("heading", { level: 1 }).getByRole("button").click();
    await page.getByRole("textbox", { name: "Title of the chat" }).fill(title);
    await page.keyboard.press("Enter");
    await eventually(() => page.title()).toContain(title);
    await page.getByRole("link", { name: title }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: title }).waitFor();
    expect(await dangers(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await say(page, WAYS.join("\n"));
    await page.reload();
    // the end of the chat is in view, and nothing far from it is drawn
    await messages(page, "You")
      .filter({ hasText: WAYS[0] ?? "" })
      .last()
      .waitFor();
    expect(await dangers(page)).toEqual([]);
    await page.goto(new URL(`/s/${encodeURIComponent(WAYS[0] ?? "")}`, page.url()).href);
    await page.getByRole("heading", { name: "There is no such chat" }).waitFor();
    expect(await dangers(page)).toEqual([]);
    expect(wrong).toEqual([]);
    expect(pathOf(page)).toContain("onerror");
  });
});
