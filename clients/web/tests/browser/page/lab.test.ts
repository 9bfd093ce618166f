/** Laws of the link lab (`?lab`): what it does to the link is real, and so are the figures and the proof after it. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../chromium.js";
import { pageStage } from "./page_stage.js";
import { expectEqual, untilAnswered, untilLive, untilQuiet } from "./view.js";

const lab = (page: Page) => page.getByRole("region", { name: "Link lab" });
const press = (page: Page, name: string) => lab(page).getByRole("button", { name }).click();

/** Bytes as they are written for people. */
function bytes(text: string | undefined): number {
  const [, number, unit] = /^([\d.]+) (B|KB)$/.exec(text ?? "") ?? [];
  return Number(number ?? Number.NaN) * (unit === "KB" ? 1024 : 1);
}

/** The newest incident, once it is over and was proved. */
async function incident(page: Page, what: string) {
  const row = lab(page).getByRole("row").filter({ hasText: what }).first();
  await row.getByText("equal by digest").waitFor();
  const [, away, missed, catchUp, how] = await row.getByRole("cell").allTextContents();
  return { away, missed: bytes(missed), catchUp: bytes(catchUp), how };
}

describeInBrowser("the link lab", () => {
  const here = pageStage({ flags: ["--lab"] });

  /** A page in the middle of a turn, its second reader there. */
  async function midTurn() {
    const page = await here.open("/?lab");
    await lab(page).getByText("Nothing has been broken yet.").waitFor();
    const turn = await here.begin(page, "stream");
    await turn.say("It streams. ");
    await untilAnswered(page, "It streams.");
    await lab(page)
      .getByText(/^at version \d+$/)
      .waitFor();
    expect(new URL(page.url()).search).toBe("?lab");
    return { page, turn };
  }

  test("cuts the link, and shows what was missed, by what it was replayed, and that both are equal", async () => {
    const { page, turn } = await midTurn();
    await press(page, "Cut the link");
    await page.getByText("Offline.").waitFor();
    await turn.say("This is missed. ".repeat(20));
    await lab(page)
      .getByText(/^\d+ versions behind$/)
      .waitFor();
    await press(page, "Restore the link");
    const { missed, catchUp, how } = await incident(page, "Link cut");
    await untilAnswered(page, "This is missed.");
    expect(missed).toBeGreaterThan(320);
    expect(catchUp).toBeGreaterThan(320);
    expect(how).toBe("replay: only what was missed");
    await turn.done();
    await untilQuiet(page);
    await expectEqual(page);
  });

  test("freezes the link, and thaws it", async () => {
    const { page, turn } = await midTurn();
    await press(page, "Freeze");
    await turn.say("This is late. ".repeat(20));
    await lab(page)
      .getByText(/^\d+ versions behind$/)
      .waitFor();
    await press(page, "Thaw");
    const { missed, catchUp } = await incident(page, "Link frozen");
    expect(missed).toBeGreaterThan(280);
    expect(catchUp).toBeGreaterThan(280);
    await untilAnswered(page, "This is late.");
    await turn.done();
  });

  test("drops the socket, and the page makes another", async () => {
    const { page, turn } = await midTurn();
    await press(page, "Drop the socket");
    const { how } = await incident(page, "Socket dropped");
    expect(how).toBe("replay: only what was missed");
    await turn.say("It goes on.");
    await untilAnswered(page, "It goes on.");
    await turn.done();
  });

  test("kills the server, which comes back with another life: the page catches up", async () => {
    const { page, turn } = await midTurn();
    await turn.commit();
    await press(page, "Kill the server");
    await turn.ended;
    const { catchUp, how } = await incident(page, "Server killed");
    expect(catchUp).toBeGreaterThan(0);
    expect(how).toBe("catch-up: what changed, whole");
    await untilLive(page);
    await page.getByText("The server stopped.").waitFor();
    await untilQuiet(page);
    await expectEqual(page);
  });
});

describeInBrowser("a server without the link lab", () => {
  const here = pageStage();

  test("does not let itself be killed by a page", async () => {
    const page = await here.open("/?lab");
    await lab(page).getByRole("button", { name: "Cut the link" }).waitFor();
    await untilLive(page);
    const asked = { headers: { "X-Midstream-Lab": "restart" } };
    expect((await fetch(`${here.server.pageUrl}lab/restart`, asked)).status).toBe(404);
    expect(await lab(page).getByRole("button", { name: "Kill the server" }).count()).toBe(0);
  });
});
