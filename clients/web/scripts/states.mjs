/** The states of the page that pictures are taken of, and how a reader gets there. */

const COMPOSER = "#composer-text";
const ANSWERED = "article[aria-label^=Agent]:last-of-type";

/** Write a message and send it. */
export async function say(tab, text) {
  await tab.fill(COMPOSER, text);
  await tab.press(COMPOSER, "Enter");
  await tab.waitForURL(/\/s\//);
}

/** Wait until no turn runs, and something was answered. */
export async function answered(tab) {
  await tab.waitForSelector(ANSWERED);
  await tab.waitForFunction(() => !document.querySelector("[aria-label='Stop the answer']"));
  await tab.waitForTimeout(250); // highlighting and the list's own measuring come after the last text
}

/** Begin a new chat from whatever is shown. */
export async function newChat(tab, server) {
  await tab.goto(server.url);
  await tab.waitForSelector(COMPOSER);
}

const WIDE = `Here is a function with a line that is far too wide for a phone, and for most columns of text as well:

\`\`\`ts
export const answer = async (topic: string, options: { readonly patience: number; readonly tone: "calm" | "brisk" }): Promise<string> => think(topic, options);
\`\`\`

| one | two | three | four | five | six | seven |
|---|---|---|---|---|---|---|
| a rather long cell | 2 | 3 | 4 | 5 | a rather long cell | 7 |`;

const TITLES = [
  "Tell me a long story",
  "مرحبا، كيف حالك اليوم؟ أريد أن أعرف ما الجديد هنا",
  "🚢 Harbour log — line 214, and all that came after it in the fog of that night",
  "note Buy milk",
  "dice",
];

export const states = {
  empty: {
    go: async ({ tab }) => {
      await tab.waitForSelector(COMPOSER);
      await tab.waitForTimeout(300);
    },
  },
  list: {
    sizes: ["desktop", "phone"],
    go: async ({ tab, server, isPhone }) => {
      for (const title of TITLES) {
        await newChat(tab, server);
        await say(tab, title);
        await answered(tab);
      }
      if (isPhone) {
        await tab.click("[aria-label='Open the list of chats']");
        await tab.waitForSelector("nav[aria-label=Chats] li");
      }
      await tab.waitForTimeout(400);
    },
  },
  story: {
    go: async ({ tab }) => {
      await say(tab, "Tell me a long story");
      await answered(tab);
    },
  },
  tools: {
    go: async ({ tab }) => {
      await say(tab, "Roll the dice, make an action, name a source and show some data; then crash");
      await answered(tab);
    },
  },
  wide: {
    go: async ({ tab }) => {
      await say(tab, WIDE);
      await answered(tab);
      await say(tab, "أهلا وسهلا بكم في هذه الصفحة 👋🏽 and some English within it");
      await answered(tab);
    },
  },
  approval: {
    go: async ({ tab }) => {
      await say(tab, "Delete something, if I approve");
      await tab.waitForSelector("text=Delete the note");
      await tab.waitForTimeout(2500);
    },
  },
  question: {
    go: async ({ tab }) => {
      await say(tab, "Take my order for a pizza");
      await tab.waitForSelector("text=How hungry are you?");
      await tab.waitForTimeout(300);
    },
  },
  streaming: {
    speed: 1,
    go: async ({ tab }) => {
      await say(tab, "Tell me a long story");
      await tab.waitForSelector("text=The harbour");
      await tab.fill(COMPOSER, "And make it rain");
      await tab.click("button[aria-label^='How to send it']");
      await tab.click("text=It waits, and gets its own answer");
      await tab.press(COMPOSER, "Enter");
      await tab.waitForSelector("[data-waiting=queued]");
      await tab.fill(COMPOSER, "One more thing");
    },
  },
  stopped: {
    speed: 1,
    go: async ({ tab }) => {
      await say(tab, "Tell me a long story");
      await tab.waitForSelector("text=The harbour");
      await tab.click("[aria-label='Stop the answer']");
      await answered(tab);
    },
  },
  failed: {
    go: async ({ tab }) => {
      await say(tab, "Crash, please");
      await answered(tab);
    },
  },
  editing: {
    go: async ({ tab }) => {
      await say(tab, "Hello");
      await answered(tab);
      await say(tab, "What can you do?");
      await answered(tab);
      await tab.locator("[aria-label='Edit and send again']").last().click({ force: true });
      await tab.waitForSelector("[aria-label='Edit the message']");
    },
  },
  offline: {
    go: async ({ tab, server }) => {
      await say(tab, "Hello");
      await answered(tab);
      await server.kill();
      await tab.waitForSelector("[data-connection][data-state=offline]");
      await say(tab, "Is anybody there?");
      await tab.waitForSelector("[data-pending]");
    },
  },
  palette: {
    go: async ({ tab, isPhone }) => {
      await say(tab, "help");
      await answered(tab);
      if (!isPhone) {
        await tab.keyboard.press("Control+k");
        await tab.waitForSelector("[cmdk-item]");
      }
    },
  },
  menu: {
    go: async ({ tab }) => {
      await say(tab, "help");
      await answered(tab);
      await tab.click("[aria-label='What to do with this chat']");
    },
  },
  confirm: {
    go: async ({ tab }) => {
      await say(tab, "help");
      await answered(tab);
      await tab.click("[aria-label^='Asks first']");
      await tab.click("text=The agent acts at once, without asking");
      await tab.waitForSelector("dialog[open]");
    },
  },
  archived: {
    go: async ({ tab }) => {
      await say(tab, "note Water the garden");
      await answered(tab);
      await tab.click("[aria-label='What to do with this chat']");
      await tab.click("[role=menu] >> text=Archive");
      await tab.waitForSelector("text=This chat is archived");
    },
  },
  missing: {
    go: async ({ tab, server }) => {
      await tab.goto(`${server.url}s/nowhere`);
      await tab.waitForSelector("text=There is no such chat");
    },
  },
};
