/** Laws of what an agent asks people: any page answers it, all pages see who did, and nothing waits for ever. */
import { decode, encode } from "@msgpack/msgpack";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { openPage } from "../pages.js";
import { type PageStage, pageStage } from "./page_stage.js";
import { chatText, expectSame, pathOf, say, untilAnswered, untilOffline, untilQuiet } from "./view.js";

/**
 * Open the page of another person. This version's server knows one person; so the page is told, in the
 * server's first words, that it is somebody else's, and everything that it then says of others is real.
 */
async function openAs(name: string, here: PageStage, path: string): Promise<Page> {
  await here.context.routeWebSocket(/./, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      const frame = typeof data === "string" ? undefined : decode(data);
      if (Array.isArray(frame) && frame[0] === "welcome") {
        const [tag, info, ...rest] = frame as [string, Record<string, unknown>];
        socket.send(Buffer.from(encode([tag, { ...info, subject: name }, ...rest])));
      } else {
        socket.send(data);
      }
    });
  });
  return openPage(here.context, new URL(path, here.server.pageUrl).href);
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

describeInBrowser("what the agent asks", () => {
  const here = pageStage();

  test("an approval that one page gives disappears in the other, which says who gave it", async () => {
    const second = await here.openElsewhere();
    const turn = await here.begin(second, "delete it");
    const first = await openAs("bea", here, pathOf(second));
    await turn.tool("delete_file", "Delete a file", { path: "old.txt" });
    const approval = turn.approval("Delete old.txt?", "It cannot be brought back.");
    for (const page of [first, second]) {
      await page.getByText("Delete old.txt?", { exact: true }).waitFor();
      await page.getByText("It cannot be brought back.").waitFor();
      await button(page, "Deny").waitFor();
    }
    expect(await first.title()).toContain("Waiting for you");
    await button(second, "Approve").click();
    expect(await approval).toEqual({ approved: true, reason: null });
    await first.getByText(/^Approved by local · /).waitFor();
    await second.getByText(/^Approved by you · /).waitFor();
    for (const page of [first, second]) {
      await button(page, "Approve").waitFor({ state: "detached" });
    }
    await turn.toolRuns();
    await turn.toolDone({ deleted: "old.txt" });
    await turn.say("It is gone.");
    await turn.done();
    await untilAnswered(first, "It is gone.");
    expect(await first.title()).not.toContain("Waiting for you");
  });

  test("a denial in one page, with its reason, disappears in the other in the same way", async () => {
    const second = await here.openElsewhere();
    const turn = await here.begin(second, "send it");
    const first = await openAs("bea", here, pathOf(second));
    const approval = turn.approval("Send the letter?");
    await button(first, "Approve").waitFor();
    await button(second, "Add a reason").click();
    await second.getByRole("textbox", { name: "Reason, for the agent" }).fill("not today");
    await button(second, "Deny").click();
    expect(await approval).toEqual({ approved: false, reason: "not today" });
    await first.getByText(/^Denied by local “not today” · /).waitFor();
    await turn.done();
    await untilQuiet(first);
  });

  test("a question that one page answers disappears in the other, which says who answered what", async () => {
    const second = await here.openElsewhere();
    const turn = await here.begin(second, "order for me");
    const first = await openAs("bea", here, pathOf(second));
    const answer = turn.ask("Your order", "What will it be?", ["tea", "coffee"]);
    await first.getByRole("radio", { name: "coffee" }).waitFor();
    await second.getByRole("radio", { name: "tea" }).check();
    await button(second, "Send answer").click();
    expect(await answer).toBe("tea");
    await first.getByText(/^Answered by local · /).waitFor();
    await second.getByText(/^Answered by you · /).waitFor();
    await first.getByRole("definition").filter({ hasText: "tea" }).waitFor();
    await first.getByRole("radio").first().waitFor({ state: "detached" });
    await turn.say("Tea it is.");
    await turn.done();
    await untilAnswered(first, "Tea it is.");
  });

  test("a page that is opened later answers what was asked before it, and the first goes on", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "ask somebody");
    const answer = turn.ask("A word", "Which word?");
    await first.getByRole("textbox", { name: "Which word?" }).waitFor();
    const later = await here.openElsewhere(pathOf(first));
    await later.getByRole("textbox", { name: "Which word?" }).fill("lighthouse");
    await button(later, "Send answer").click();
    expect(await answer).toBe("lighthouse");
    await first.getByRole("definition").filter({ hasText: "lighthouse" }).waitFor();
    await turn.say("A good word.");
    await turn.done();
    for (const page of [first, later]) {
      await untilAnswered(page, "A good word.");
      await untilQuiet(page);
    }
    await expectSame(first, later);
  });

  test("the first answer counts, and a page that answered without a connection learns it", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "who is first?");
    const approval = turn.approval("May I?");
    const second = await here.openElsewhere(pathOf(first));
    await button(first, "Deny").waitFor();
    here.proxy.cut("socket");
    await untilOffline(first);
    await button(first, "Deny").click();
    await button(second, "Approve").click();
    expect(await approval).toEqual({ approved: true, reason: null });
    here.proxy.heal();
    await first.getByText(/^Approved by you · /).waitFor();
    expect(await chatText(first)).not.toContain("Denied");
    await button(first, "Denying…").waitFor({ state: "detached" });
    await turn.done();
    await expectSame(first, second);
  });

  test("while it waits, what is written in any page is not lost", async () => {
    const first = await here.open();
    const turn = await here.begin(first, "ask, and listen");
    const approval = turn.approval("Go on?");
    const second = await here.openElsewhere(pathOf(first));
    await button(second, "Approve").waitFor();
    await say(second, "and hurry");
    await first.getByText("Written elsewhere; shown when it is its turn").waitFor();
    await button(first, "Approve").click();
    await approval;
    expect(await turn.inputs()).toBe(1);
    await turn.say("I hurry.");
    await turn.done();
    for (const page of [first, second]) {
      await untilAnswered(page, "I hurry.");
      await untilQuiet(page);
    }
    await expectSame(first, second);
  });
});
