/** Laws of how a server serves its page, as a browser sees them: what is kept, what may run, who may restart it. */
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { describeInBrowser } from "./chromium.js";
import { LOST_LINK, openPage } from "./pages.js";
import { expectEqual, newSession, say, stage, untilLive } from "./stage.js";

/** What Chromium says of what a policy stopped. */
const STOPPED = /Content Security Policy|violates/;

/** A page of another site on this machine; returns its address. */
async function stranger(): Promise<string> {
  const site = createServer((_, response) => {
    response.writeHead(200, { "Content-Type": "text/html" });
    response.end('<!doctype html><title>stranger</title><link rel="icon" href="data:,">');
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  const address = site.address();
  return `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}/`;
}

describeInBrowser("a page that a server serves", () => {
  const here = stage(0, { flags: ["--lab"] });

  test("is asked for again by its tag, and its assets not at all", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    const before = [...here.proxy.lines];
    await page.reload();
    await untilLive(page);
    const again = here.proxy.lines.slice(before.length);
    // one for the page, one for the socket
    expect(again.map(({ kind }) => kind).sort()).toEqual(["request", "socket"]);
    // and that one is answered by headers alone
    const [first, second] = [before, again].map((lines) => lines.find(({ kind }) => kind === "request"));
    expect(second?.toClient).toBeLessThan((first?.toClient ?? 0) - 100);
  });

  test("runs no script that stands in its text, whatever a model wrote", async () => {
    const page = await here.open(newSession(), "", [STOPPED, /ERR_FILE|Failed to load resource/]);
    await untilLive(page);
    const ran = await page.evaluate(async () => {
      const marks = globalThis as { hacked?: string };
      const place = document.createElement("div");
      document.body.append(place);
      place.innerHTML = `
        <img src="data:," onerror="globalThis.hacked = 'handler'">
        <a href="javascript:globalThis.hacked='link'">link</a>
        <form action="https://evil.example/"><button>send</button></form>
        <iframe srcdoc="<script>parent.hacked = 'frame'</script>"></iframe>
        <base href="https://evil.example/">`;
      const script = document.createElement("script");
      script.textContent = "globalThis.hacked = 'script'";
      document.body.append(script);
      place.querySelector("a")?.click();
      place.querySelector("button")?.click();
      await fetch("https://evil.example/").catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 300)); // what would run, would run now
      return [marks.hacked, document.baseURI.startsWith(location.origin)];
    });
    expect(ran).toEqual([undefined, true]);
    expect(page.url()).toContain(here.proxy.pageUrl);
  });

  test("may restart the server in its lab, as kill -9 would, and is equal again", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    await say(page, "before");
    const status = await page.evaluate(async () => {
      const { restart } = await (await fetch("/lab")).json();
      const answer = await fetch("/lab/restart", { headers: { "X-Midstream-Lab": "restart" } });
      return [restart, answer.status];
    });
    expect(status).toEqual([true, 202]);
    await page.waitForFunction(() => fixture.states.filter(({ state }) => state === "live").length === 2);
    await say(page, "after");
    await expectEqual(page);
  });

  test("is the only one who may: a page of another site gets nothing done", async () => {
    const page = await here.open(newSession());
    await untilLive(page);
    const other = await openPage(here.context, await stranger(), [
      LOST_LINK,
      STOPPED,
      /CORS policy|Failed to load resource|Refused to|X-Frame/,
    ]);
    const target = `${here.proxy.pageUrl}lab/restart`;
    const results = await other.evaluate(async (target) => {
      const attempt = (how: RequestInit) =>
        fetch(target, how).then(
          (answer) => `${answer.type} ${answer.status}`,
          () => "failed",
        );
      const headers = { "X-Midstream-Lab": "restart" };
      const done = [
        await attempt({ headers }),
        await attempt({ headers, credentials: "include" }),
        await attempt({ headers, mode: "no-cors" }), // the header is left out
        await attempt({ method: "POST", mode: "no-cors" }),
      ];
      for (const name of ["img", "iframe", "script"]) {
        const element = document.createElement(name);
        element.setAttribute("src", target);
        document.body.append(element);
        await new Promise((resolve) => {
          element.onload = element.onerror = resolve;
        });
      }
      return done;
    }, target);
    expect(results).toEqual(
      ["failed", "failed", "opaque 0", "opaque 0"].map((word) =>
        expect.stringMatching(new RegExp(`^(${word}|failed)$`)),
      ),
    );
    const opened = await here.context.newPage();
    await opened.goto(target);
    expect(await opened.textContent("body")).toContain("Only the page of this server may restart it");
    await say(page, "still the same server");
    expect(await page.evaluate(() => fixture.states.filter(({ state }) => state === "live").length)).toBe(1);
    // and nobody puts this page into a frame, to have it clicked
    await other.evaluate(async (address) => {
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
      await new Promise((resolve) => {
        frame.onload = resolve;
      });
    }, here.proxy.pageUrl);
    const titles = await Promise.all(other.frames().map((frame) => frame.title()));
    expect(titles).toContain("stranger");
    expect(titles).not.toContain("The client alone");
  });
});
