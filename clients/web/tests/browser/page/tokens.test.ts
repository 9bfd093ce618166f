/** Laws of tokens: the page asks for one, takes it on, forgets it, and shows nobody what another reader kept. */
import { execFileSync } from "node:child_process";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { PYTHON } from "../../../../typescript/tests/end_to_end/server.js";
import { describeInBrowser } from "../chromium.js";
import { pageStage } from "./page_stage.js";
import { choose, composer, eventually, untilAnswered, untilLive, untilQuiet } from "./view.js";

const SECRET = { MIDSTREAM_TOKEN_SECRET: "a secret that is long enough for these tests of the page" };

/** Mint a token as anybody does. */
const tokenOf = (subject: string, ...options: string[]): string =>
  execFileSync(PYTHON, ["-m", "midstream.cli", "token", "--sub", subject, ...options], {
    env: { ...process.env, ...SECRET },
    encoding: "utf8",
  }).trim();

const asking = (page: Page) => page.getByRole("dialog", { name: "This server asks who you are" });
const field = (page: Page) => asking(page).getByRole("textbox", { name: "Token" });

/** Give the page a token, and wait until the server has taken it. */
async function give(page: Page, token: string): Promise<void> {
  await field(page).fill(token);
  await asking(page).getByRole("button", { name: "Use this token" }).click();
  await asking(page).waitFor({ state: "hidden" });
  await untilLive(page);
}

describeInBrowser("a server with tokens", () => {
  const here = pageStage({ environment: SECRET });
  const chats = (page: Page) => page.getByRole("navigation", { name: "Chats" }).getByRole("link");

  test("asks, refuses in words what is no token, and goes on with one; a reload asks nothing", async () => {
    const page = await here.open();
    await field(page).fill("no token at all");
    await asking(page).getByRole("button", { name: "Use this token" }).click();
    await asking(page).getByRole("alert").waitFor();
    expect(await asking(page).getByRole("alert").textContent()).toContain("does not accept this token");
    await give(page, tokenOf("alice"));
    await here.answer(page, "Who am I?", "You are Alice.");
    await untilAnswered(page, "You are Alice.");
    await page.reload();
    await untilAnswered(page, "You are Alice.");
    expect(await asking(page).count()).toBe(0);
    expect(page.url()).not.toContain("eyJ");
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain("eyJ");
  });

  test("shows another reader of this browser nothing, and forgets one who asks for it", async () => {
    const alice = await here.open();
    await give(alice, tokenOf("alice2"));
    await here.answer(alice, "A secret of Alice", "I keep it.");
    await untilQuiet(alice);
    await eventually(() => chats(alice).filter({ hasText: "A secret of Alice" }).count()).toBe(1);
    const bob = await here.open(); // a tab of its own: it knows no token
    await give(bob, tokenOf("bob"));
    expect(await chats(bob).count()).toBe(0);
    expect(await bob.locator("body").textContent()).not.toContain("Alice");
    await choose(alice, "You are alice2", /^Forget the token/);
    await alice.getByRole("button", { name: "Forget", exact: true }).click();
    await asking(alice).waitFor();
    expect(await alice.evaluate(() => JSON.stringify(Object.keys(localStorage)))).not.toContain("alice2");
    await untilLive(bob);
  });

  test("one who may only read is told so, and is offered nothing that writes", async () => {
    const writer = await here.open();
    await give(writer, tokenOf("carol"));
    await here.answer(writer, "Read me", "Read by Carol.");
    await untilQuiet(writer);
    const reader = await here.open(new URL(writer.url()).pathname);
    await give(reader, tokenOf("carol", "--scopes", "read"));
    await reader.getByText("Read by Carol.").waitFor();
    await reader.getByText("Your token lets you read only").first().waitFor();
    await composer(reader).waitFor({ state: "detached" });
  });
});
