// @vitest-environment happy-dom
/** The primitives of assistant-ui against the real server. */
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  QueueItemPrimitive,
  ThreadListItemPrimitive,
  ThreadListPrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
} from "@assistant-ui/react";
import { act, fireEvent, waitFor } from "@testing-library/react";
import { useLayoutEffect, useRef, useState } from "react";
import { describe, expect, test } from "vitest";
import { useMidstreamRuntime, useMidstreamThreadList } from "../../src/assistant-ui/index.js";
import { hasServer } from "../end_to_end/server.js";
import { open, withServer } from "./page.js";

type Opened = ReturnType<typeof open>;

function Tool({ toolName, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  const isOpen = approval && approval.approved === undefined && !approval.resolution;
  const answers = Object.fromEntries(
    (approval?.questions ?? []).map(({ id, options, multiple }) => [
      id,
      options ? { optionIds: options.slice(0, multiple ? 2 : 1).map((one) => one.id) } : { text: "thin" },
    ]),
  );
  return (
    <section>
      [{toolName} {JSON.stringify(result)}]
      {isOpen && (
        <button
          type="button"
          onClick={() => void respondToApproval(approval.questions ? { answers } : { approved: true })}
        >
          answer
        </button>
      )}
    </section>
  );
}

const PARTS = {
  tools: { Fallback: Tool },
  data: { Fallback: ({ name }: { readonly name: string }) => <i>[{name}]</i> },
};

function Message() {
  return (
    <MessagePrimitive.Root>
      <article>
        <MessagePrimitive.Parts components={PARTS} />
      </article>
      <ActionBarPrimitive.Edit>edit</ActionBarPrimitive.Edit>
      <ActionBarPrimitive.Reload>again</ActionBarPrimitive.Reload>
    </MessagePrimitive.Root>
  );
}

function EditComposer() {
  return (
    <ComposerPrimitive.Root>
      <ComposerPrimitive.Input aria-label="edited" />
      <ComposerPrimitive.Send>ask that</ComposerPrimitive.Send>
    </ComposerPrimitive.Root>
  );
}

const MESSAGES = { Message, EditComposer };

interface PageProps {
  readonly id: string;
  /** What was on the screen, one commit after the other. */
  readonly frames?: string[];
}

/** A page that shows one session, and another where it is told to. */
function Page({ id, frames }: PageProps) {
  const [shown, show] = useState(id);
  return <Chat key={shown} id={shown} show={show} {...(frames && { frames })} />;
}

function Chat({ id, show, frames }: PageProps & { readonly show: (id: string) => void }) {
  const threadList = useMidstreamThreadList({ onSwitchToSession: show });
  const runtime = useMidstreamRuntime(id, { onSwitchToSession: show, threadList });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <Thread {...(frames && { frames })} />
      <ThreadListPrimitive.Root>
        <ThreadListPrimitive.Items components={{ ThreadListItem: Item }} />
      </ThreadListPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

function Item() {
  return (
    <ThreadListItemPrimitive.Root>
      <ThreadListItemPrimitive.Trigger>
        <ThreadListItemPrimitive.Title fallback="untitled" />
      </ThreadListItemPrimitive.Trigger>
    </ThreadListItemPrimitive.Root>
  );
}

function Thread({ frames }: { readonly frames?: string[] }) {
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const seen = new MutationObserver(() => frames?.push(root.current?.textContent ?? ""));
    if (root.current) {
      seen.observe(root.current, { subtree: true, childList: true, characterData: true });
    }
    return () => seen.disconnect();
  }, [frames]);
  return (
    <>
      <ThreadPrimitive.Root>
        <div ref={root} data-testid="thread">
          <ThreadPrimitive.Messages components={MESSAGES} />
        </div>
      </ThreadPrimitive.Root>
      <ThreadPrimitive.If running>
        <output>runs</output>
      </ThreadPrimitive.If>
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input aria-label="say" />
        <ComposerPrimitive.Send>send</ComposerPrimitive.Send>
        <ComposerPrimitive.Cancel>stop</ComposerPrimitive.Cancel>
        <ComposerPrimitive.Queue>
          {() => <QueueItemPrimitive.Remove>take back</QueueItemPrimitive.Remove>}
        </ComposerPrimitive.Queue>
      </ComposerPrimitive.Root>
    </>
  );
}

async function say(page: Opened, text: string, label = "say", button = "send"): Promise<void> {
  fireEvent.change(await page.findByLabelText(label), { target: { value: text } });
  await waitFor(() => expect(page.getByText(button)).toHaveProperty("disabled", false));
  await act(async () => fireEvent.click(page.getByText(button)));
}

const threadOf = (page: Opened) => page.getByTestId("thread").textContent ?? "";

const ends = (page: Opened, text: string) =>
  waitFor(() => {
    expect(threadOf(page)).toContain(text);
    expect(page.queryByText("runs")).toBeNull();
  });

describe.skipIf(!hasServer)("assistant-ui over a real server", { timeout: 60_000 }, () => {
  const server = withServer(5);

  test("a turn streams into the primitives", async () => {
    const frames: string[] = [];
    const page = open(server.device(), <Page id="streams" frames={frames} />);
    await say(page, "a long story, and count these words");
    await page.findByText("runs");
    await ends(page, "the longest is `story`.");
    expect(threadOf(page)).toContain('[count_words {"words":7');
    const answers = frames.map((frame) => /A harbour keeps[\s\S]*/.exec(frame)?.[0] ?? "");
    expect(new Set(answers).size).toBeGreaterThan(4);
  });

  test("turns that another device starts are shown, the second and third as well, and none is stopped by leaving", async () => {
    const page = open(server.device(), <Page id="others" />);
    const session = await server.device().session("others", { create: true });
    for (const text of ["first", "second"]) {
      await (await session.prompt(text)).finished(30_000);
      await ends(page, `said “${text}”`);
    }
    const handle = await session.prompt("a long story");
    await waitFor(() => expect(threadOf(page)).toContain("A harbour keeps"));
    page.unmount();
    expect((await handle.finished(30_000)).state).toBe("completed");
  });

  test("an approval and a question are answered here, and one that is answered elsewhere is seen", async () => {
    const page = open(server.device(), <Page id="asks" />);
    const session = await server.device().session("asks", { create: true });
    await say(page, "note milk");
    await ends(page, "Noted.");
    await say(page, "delete it");
    fireEvent.click(await page.findByText("answer"));
    await ends(page, "Gone.");
    await say(page, "a question, please");
    fireEvent.click(await page.findByText("answer"));
    await ends(page, "Here is your order");
    await say(page, "note bread");
    await ends(page, "bread");
    await say(page, "delete it");
    await page.findByText("answer");
    const [asked] = await session.interactions();
    await session.deny(asked?.interaction.interaction_id ?? "");
    await ends(page, "Then it stays.");
    expect(page.queryByText("answer")).toBeNull();
  });

  test("stop stops the turn, and what is typed while one runs is taken", async () => {
    const client = server.device();
    const page = open(client, <Page id="stops" />);
    await say(page, "a long story");
    await waitFor(() => expect(threadOf(page)).toContain("harbour"));
    await say(page, "and count these words");
    await ends(page, "Your message has");
    await say(page, "a long story");
    await waitFor(() => expect(threadOf(page).match(/A harbour keeps/g)?.length).toBe(2));
    await act(async () => fireEvent.click(page.getByText("stop")));
    await waitFor(() => expect(page.queryByText("runs")).toBeNull());
    const session = client.open("stops");
    const last = session.turns.get(session.messages.at(-1)?.turn_id ?? "");
    expect(last?.state).toBe("stopped");
  });

  test("what waits for its turn is shown, wherever it was typed, and can be taken back", async () => {
    const page = open(server.device(), <Page id="queues" />);
    const session = await server.device().session("queues", { create: true });
    const first = await session.prompt("a long story");
    await waitFor(() => expect(threadOf(page)).toContain("harbour"));
    const handle = await session.prompt("and then this", { delivery: "queue" });
    fireEvent.click(await page.findByText("take back"));
    await expect(handle.finished(30_000)).rejects.toMatchObject({ code: "input_cancelled" });
    await waitFor(() => expect(page.queryByText("take back")).toBeNull());
    await first.stop();
  });

  test("an edited question is asked in a copy, and an answer is made again in another; nothing is lost", async () => {
    const client = server.device();
    const page = open(client, <Page id="edits" />);
    await say(page, "one");
    await ends(page, "said “one”");
    await say(page, "two");
    await ends(page, "said “two”");
    fireEvent.click(page.getAllByText("edit")[2] as HTMLElement);
    await say(page, "three", "edited", "ask that");
    await ends(page, "said “three”");
    expect(threadOf(page)).toContain("said “one”");
    expect(threadOf(page)).not.toContain("two");
    const before = (await client.sessions(200)).map(({ session_id }) => session_id);
    fireEvent.click(page.getAllByText("again").at(-1) as HTMLElement);
    const copy = await waitFor(async () => {
      const [newest] = await client.sessions(1);
      expect(newest?.session_id).not.toBe(undefined);
      expect(before).not.toContain(newest?.session_id);
      expect(newest).toMatchObject({ message_count: 4 });
      expect(newest?.running_turn_id).toBeUndefined();
      return newest?.session_id ?? "";
    });
    await ends(page, "said “three”");
    expect(client.open(copy).messages.length).toBe(4);
    const original = await client.session("edits");
    expect(original.messages.length).toBe(4);
    expect(original.info?.running_turn_id).toBeUndefined();
  });

  test("the thread list is the list of sessions, and shows another one when it is chosen", async () => {
    const client = server.device();
    const other = await server.device().session("listed", { create: true });
    await other.update({ title: "The other chat" });
    await (await other.prompt("hello from there")).finished(30_000);
    const page = open(client, <Page id="lists" />);
    await say(page, "hello from here");
    await ends(page, "said “hello from here”");
    fireEvent.click(await page.findByText("The other chat"));
    await ends(page, "said “hello from there”");
    expect(threadOf(page)).not.toContain("from here");
  });
});
