/** The main states of the page, and how a reader gets there. They are looked at by tests, and in pictures. */
import type { Page } from "playwright-core";
import type { Size, Visit } from "./house.js";

const COMPOSER = "#composer-text";
const ANSWERED = "article[aria-label^=Agent]";
const STOP = "[aria-label='Stop the answer']";
const OPEN_LIST = "[aria-label^='Open the list of chats']";
const MENU = "[aria-label='What to do with this chat']";

export interface PageState {
  /** Bring the page from a new chat into the state, and wait until it stands still. */
  go(visit: Visit): Promise<void>;
  /** On which screens there is such a state; else on all. */
  readonly sizes?: readonly Size[];
  /** More of the server's flags. */
  readonly flags?: readonly string[];
}

/** Write a message and send it. */
export async function say(page: Page, text: string): Promise<void> {
  const isFirst = !page.url().includes("/s/");
  await page.fill(COMPOSER, text);
  await page.press(COMPOSER, "Enter");
  if (isFirst) {
    await page.waitForURL(/\/s\//);
  }
}

/** Wait until something was answered, and no turn runs. */
export async function answered(page: Page): Promise<void> {
  await page.waitForSelector(ANSWERED);
  await page.waitForSelector(STOP, { state: "detached" });
}

/** Say this, and wait for its answer. */
export async function ask(page: Page, text: string): Promise<void> {
  await say(page, text);
  await page
    .locator("article", { hasText: text.slice(0, 30) })
    .first()
    .waitFor();
  await answered(page);
}

async function newChat({ page, url }: Visit): Promise<void> {
  await page.goto(url);
  await page.waitForSelector(COMPOSER);
}

const WIDE_PROMPT = "reading of a line of code that is far too wide, and of a picture";

/** Chats that are answered, that ask, that run, and that were read or not. */
async function fillList(visit: Visit): Promise<void> {
  const { page } = visit;
  for (const title of [
    "Tell me a long story",
    "مرحبا، كيف حالك اليوم؟ أريد أن أعرف ما الجديد هنا",
    "🚢 Harbour log — line 214, and all that came after it in the fog of that night",
  ]) {
    await newChat(visit);
    await ask(page, title);
  }
  await newChat(visit);
  await say(page, "delete something, if I approve");
  await page.waitForSelector("text=Delete the note");
  await newChat(visit);
  await say(page, "writing about boats");
  await page.waitForSelector("text=a new copy");
  await newChat(visit);
  await ask(page, "note Buy milk");
}

export const states: Readonly<Record<string, PageState>> = {
  empty: { go: async ({ page }) => void (await page.waitForSelector(COMPOSER)) },
  story: { go: ({ page }) => ask(page, "Tell me a long story") },
  streaming: {
    go: async ({ page }) => {
      await say(page, "writing about boats, please");
      await page.waitForSelector("text=a new copy");
    },
  },
  reasoning: {
    go: async ({ page }) => {
      await say(page, "thinking about boats, please");
      await page.click("article button:has-text('Thinking')");
      await page.waitForSelector("text=would have to");
    },
  },
  tools: {
    go: async ({ page }) => {
      await say(page, "working in the harbour, please");
      await page.waitForSelector("text=Send a signal");
    },
  },
  parts: {
    go: ({ page }) => ask(page, "Make an action, count words, name a source and show some data"),
  },
  wide: {
    go: async ({ page }) => {
      await ask(page, WIDE_PROMPT);
      await ask(page, "أهلا وسهلا بكم في هذه الصفحة 👋🏽 and some English within it");
    },
  },
  approval: {
    go: async ({ page }) => {
      await say(page, "Delete something, if I approve");
      await page.waitForSelector("text=Delete the note");
    },
  },
  question: {
    go: async ({ page }) => {
      await say(page, "Take my order for a pizza");
      await page.waitForSelector("text=How hungry are you?");
    },
  },
  error: { go: ({ page }) => ask(page, "Have an error, and then crash, please") },
  stopped: {
    go: async ({ page }) => {
      await say(page, "writing about boats, please");
      await page.waitForSelector("text=a new copy");
      await page.click(STOP);
      await answered(page);
    },
  },
  offline: {
    go: async ({ page, server }) => {
      await ask(page, "Hello");
      await server.kill();
      await page.waitForSelector("[data-connection][data-state=offline]");
      await say(page, "Is anybody there?");
      await page.waitForSelector("[data-pending]");
    },
  },
  queued: {
    go: async ({ page }) => {
      await say(page, "writing about boats, please");
      await page.waitForSelector("text=a new copy");
      await page.fill(COMPOSER, "And make it rain");
      await page.click("button[aria-label^='How to send it']");
      await page.click("text=It waits, and gets its own answer");
      await page.press(COMPOSER, "Enter");
      await page.waitForSelector("[data-waiting=queued]");
      await page.fill(COMPOSER, "One more thing");
    },
  },
  editing: {
    go: async ({ page }) => {
      await ask(page, "Hello");
      await ask(page, "What can you do?");
      await page.locator("[aria-label='Edit and send again']").last().click({ force: true });
      await page.waitForSelector("[aria-label='Edit the message']");
    },
  },
  archived: {
    go: async ({ page }) => {
      await ask(page, "note Water the garden");
      await page.click(MENU);
      await page.click("[role=menu]:popover-open >> text=Archive");
      await page.waitForSelector("text=This chat is archived");
    },
  },
  "not found": {
    go: async ({ page, url }) => {
      await page.goto(`${url}s/nowhere`);
      await page.waitForSelector("text=There is no such chat");
    },
  },
  list: {
    go: async (visit) => {
      await fillList(visit);
      if (visit.isPhone) {
        await visit.page.click(OPEN_LIST);
      }
      await visit.page.waitForSelector("nav[aria-label=Chats] li");
    },
  },
  menu: {
    go: async ({ page }) => {
      await ask(page, "help");
      await page.click(MENU);
      await page.waitForSelector("[role=menu]:popover-open");
    },
  },
  palette: {
    sizes: ["desktop"],
    go: async ({ page }) => {
      await ask(page, "help");
      await page.keyboard.press("Control+k");
      await page.waitForSelector("[cmdk-item]");
    },
  },
  confirm: {
    go: async ({ page }) => {
      await ask(page, "help");
      await page.click("[aria-label^='Asks first']");
      await page.click("text=The agent acts at once, without asking");
      await page.waitForSelector("dialog[open]");
    },
  },
  lab: {
    flags: ["--lab"],
    go: async (visit) => {
      const { page, url } = visit;
      await page.goto(`${url}?lab`);
      await ask(page, "Tell me a long story");
      await page.waitForSelector("text=Link lab");
    },
  },
};

/** Wait until colours, fonts and the list's own measuring have settled: two frames in which nothing changes. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let quiet = setTimeout(done, 300);
        const observer = new MutationObserver(() => {
          clearTimeout(quiet);
          quiet = setTimeout(done, 300);
        });
        const end = setTimeout(done, 3000); // a clock that ticks is never quiet
        function done() {
          observer.disconnect();
          clearTimeout(end);
          resolve();
        }
        observer.observe(document.body, { subtree: true, childList: true, attributes: true });
      }),
  );
}
