// @vitest-environment happy-dom
/** The AI SDK's own `useChat` against the real server. */
import { type UseChatHelpers, useChat } from "@ai-sdk/react";
import { fireEvent, waitFor } from "@testing-library/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage, type UIMessageChunk } from "ai";
import { useLayoutEffect, useMemo, useState } from "react";
import { describe, expect, test } from "vitest";
import { MidstreamChatTransport, toUIMessage, useSyncedChat } from "../../src/ai-sdk/index.js";
import { useClient } from "../../src/react/index.js";
import { hasServer } from "../end_to_end/server.js";
import { open, withServer } from "./page.js";

/** What a page showed, one render after the other. */
interface Shown {
  readonly status: string;
  readonly messages: UIMessage[];
}

const textOf = ({ parts }: UIMessage): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("");

interface PageProps {
  readonly id: string;
  readonly renders?: Shown[];
}

function useTransport(): MidstreamChatTransport {
  const client = useClient();
  return useMemo(() => new MidstreamChatTransport(client), [client]);
}

function Chat({ id, renders }: PageProps) {
  return <Page chat={useSyncedChat(useChat({ id, transport: useTransport() }))} renders={renders} />;
}

/** A chat that has the transport, and nothing else of midstream. */
function Bare({ id, renders }: PageProps) {
  const chat = useChat({
    id,
    transport: useTransport(),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return <Page chat={chat} renders={renders} />;
}

type PageOf = { readonly chat: UseChatHelpers<UIMessage>; readonly renders: Shown[] | undefined };

function Page({ chat, renders }: PageOf) {
  const { messages, status, error } = chat;
  useLayoutEffect(() => {
    renders?.push({ status, messages }); // what is on the screen: `useChat` begins some renders that it drops
  });
  return (
    <>
      {messages.map((message) => (
        <article key={message.id} data-role={message.role}>
          {textOf(message)}
        </article>
      ))}
      <output>{status}</output>
      <p>{error?.message}</p>
      <Approvals parts={messages.flatMap(({ parts }) => parts)} answer={chat.addToolApprovalResponse} />
      <input aria-label="say" onChange={({ target }) => void chat.sendMessage({ text: target.value })} />
      <button type="button" onClick={() => void chat.stop()}>
        stop
      </button>
    </>
  );
}

/** A chat that offers to answer again. */
function Again({ id }: { readonly id: string }) {
  const { regenerate } = useSyncedChat(useChat({ id, transport: useTransport() }));
  const [refusal, setRefusal] = useState("");
  return (
    <>
      <Chat id={id} />
      <button type="button" onClick={() => void regenerate().catch((error) => setRefusal(String(error)))}>
        again
      </button>
      <p>{refusal}</p>
    </>
  );
}

type Answer = (answer: { id: string; approved: boolean }) => unknown;

function Approvals({ parts, answer }: { readonly parts: UIMessage["parts"]; readonly answer: Answer }) {
  return parts.map((part) =>
    "approval" in part && part.approval && "toolCallId" in part ? (
      <section key={part.toolCallId}>
        {part.state}
        {part.state === "approval-requested" && (
          <button type="button" onClick={() => void answer({ id: part.approval.id, approved: true })}>
            approve
          </button>
        )}
      </section>
    ) : null,
  );
}

const say = (page: ReturnType<typeof open>, text: string) =>
  fireEvent.change(page.getByLabelText("say"), { target: { value: text } });

const statusOf = (page: ReturnType<typeof open>) => page.getByRole("status").textContent;

/** In every render, an answer is at least what it was in the render before. */
function expectOnlyGrowth(renders: readonly Shown[]): void {
  const seen = new Map<string, string>();
  for (const { messages } of renders) {
    for (const message of messages) {
      const text = textOf(message);
      expect(text.startsWith(seen.get(message.id) ?? "")).toBe(true);
      seen.set(message.id, text);
    }
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
  }
}

describe.skipIf(!hasServer)("useChat over a real server", { timeout: 60_000 }, () => {
  const server = withServer(5);
  const endsIn = (page: ReturnType<typeof open>, text: string | RegExp) =>
    waitFor(() => {
      expect(page.container.textContent).toMatch(text);
      expect(statusOf(page)).toBe("ready");
    });

  test("a turn streams, and ends as the session has it", async () => {
    const client = server.device();
    const renders: Shown[] = [];
    const page = open(client, <Chat id="streams" renders={renders} />);
    say(page, "a long story, and count these words");
    await endsIn(page, "Your message has");
    const { messages } = client.open("streams");
    await waitFor(() => expect(renders.at(-1)?.messages).toEqual(messages.map(toUIMessage)));
    expect(page.getAllByRole("article").map((one) => one.textContent)).toEqual(
      messages.map((message) => textOf(toUIMessage(message))),
    );
    const answers = renders.flatMap(({ messages }) => (messages[1] ? [textOf(messages[1])] : []));
    expect(new Set(answers).size).toBeGreaterThan(5);
    expect(new Set(renders.map(({ status }) => status))).toEqual(
      new Set(["ready", "submitted", "streaming"]),
    );
    expectOnlyGrowth(renders);
  });

  test("turns that another device starts are shown as they are written, the second and third as well", async () => {
    const [here, there] = [server.device(), server.device()];
    const renders: Shown[] = [];
    const page = open(here, <Chat id="others" renders={renders} />);
    const session = await there.session("others", { create: true });
    for (const text of ["first", "second", "third"]) {
      await (await session.prompt(text)).finished(30_000);
      await endsIn(page, `said “${text}”`);
    }
    expect(page.getAllByRole("article").length).toBe(6);
    expect(renders.map(({ status }) => status)).toContain("streaming");
    expectOnlyGrowth(renders);
  });

  test("a page that goes stops no turn, and one that comes back in mid-turn goes on with it", async () => {
    const first = server.device();
    const page = open(first, <Chat id="reloads" />);
    say(page, "a long story");
    await waitFor(() => expect(page.getAllByRole("article")[1]?.textContent?.length).toBeGreaterThan(40));
    page.unmount();
    first.close();
    const second = server.device();
    const renders: Shown[] = [];
    const again = open(second, <Chat id="reloads" renders={renders} />);
    await waitFor(() => expect(statusOf(again)).toBe("streaming"));
    await waitFor(() => expect(statusOf(again)).toBe("ready"));
    const session = second.open("reloads");
    expect(session.turns.get(session.messages[0]?.turn_id ?? "")?.state).toBe("completed");
    await waitFor(() => expect(renders.at(-1)?.messages).toEqual(session.messages.map(toUIMessage)));
    expectOnlyGrowth(renders);
  });

  test("what is written in mid-turn is answered in its place", async () => {
    const client = server.device();
    const renders: Shown[] = [];
    const page = open(client, <Chat id="steers" renders={renders} />);
    const session = await server.device().session("steers", { create: true });
    say(page, "a long story");
    await waitFor(() => expect(page.getAllByRole("article")[1]?.textContent?.length).toBeGreaterThan(40));
    await session.prompt("and count these words");
    await endsIn(page, "Your message has");
    expect(renders.at(-1)?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    await waitFor(() => expect(renders.at(-1)?.messages).toEqual(session.messages.map(toUIMessage)));
    expectOnlyGrowth(renders);
  });

  test("stop stops the turn", async () => {
    const client = server.device();
    const page = open(client, <Chat id="stops" />);
    say(page, "a long story");
    await waitFor(() => expect(page.getAllByRole("article")[1]?.textContent?.length).toBeGreaterThan(20));
    fireEvent.click(page.getByText("stop"));
    await waitFor(() => expect(statusOf(page)).toBe("ready"));
    const session = client.open("stops");
    expect(session.turns.get(session.messages[0]?.turn_id ?? "")?.state).toBe("stopped");
  });

  test("an approval is given here, and one that is given elsewhere is seen here", async () => {
    const [here, there] = [server.device(), server.device()];
    const renders: Shown[] = [];
    const page = open(here, <Chat id="approves" renders={renders} />);
    say(page, "note milk");
    await endsIn(page, "Noted");
    say(page, "delete it");
    fireEvent.click(await page.findByText("approve"));
    await endsIn(page, "Gone");
    say(page, "note bread");
    await endsIn(page, "- bread");
    say(page, "delete it");
    await page.findByText("approve");
    const session = await there.session("approves");
    const [asked] = await session.interactions();
    await session.approve(asked?.interaction.interaction_id ?? "");
    await waitFor(() => expect(page.queryByText("approve")).toBeNull());
    await waitFor(() => expect(renders.at(-1)?.messages).toEqual(session.messages.map(toUIMessage)));
    expectOnlyGrowth(renders);
  });

  test("a turn that fails is an error, and what it wrote stays", async () => {
    const page = open(server.device(), <Chat id="fails" />);
    say(page, "please fail");
    await waitFor(() => expect(statusOf(page)).toBe("error"));
    expect(page.container.textContent).toContain("The demo agent failed because it was asked to.");
    await waitFor(() => expect(page.container.textContent).toContain("This sentence will never"));
    say(page, "hello again");
    await endsIn(page, "hello again”");
  });

  test("from A to B and to A again in mid-turn, no render shows one under the other", async () => {
    const client = server.device();
    const renders = { a: [] as Shown[], b: [] as Shown[] };
    const page = open(client, <Chat id="thread a" renders={renders.a} />);
    say(page, "a long story");
    await waitFor(() => expect(page.getAllByRole("article")[1]?.textContent?.length).toBeGreaterThan(20));
    page.rerender(<Chat id="thread b" renders={renders.b} />);
    say(page, "hello b");
    await endsIn(page, "said “hello b”");
    page.rerender(<Chat id="thread a" renders={renders.a} />);
    await waitFor(() => expect(statusOf(page)).toBe("ready"));
    const session = client.open("thread a");
    await waitFor(() => expect(renders.a.at(-1)?.messages).toEqual(session.messages.map(toUIMessage)));
    for (const [name, other] of [
      ["a", "hello b"],
      ["b", "harbour"],
    ] as const) {
      expect(renders[name].flatMap(({ messages }) => messages.map(textOf)).join()).not.toContain(other);
    }
    expectOnlyGrowth(renders.a);
  });

  test("the transport alone streams, asks for approval as the AI SDK has it, and goes on where it was", async () => {
    const client = server.device();
    const renders: Shown[] = [];
    const page = open(client, <Bare id="bare" renders={renders} />);
    say(page, "note milk");
    await endsIn(page, "Noted");
    say(page, "delete it");
    await page.findByText("approve");
    expect(statusOf(page)).toBe("ready"); // until somebody answers there is nothing to read
    fireEvent.click(page.getByText("approve"));
    await endsIn(page, "Gone");
    const { messages } = await client.session("bare");
    expect(renders.at(-1)?.messages.map(textOf)).toEqual(messages.map((one) => textOf(toUIMessage(one))));
    expectOnlyGrowth(renders);
  });

  test("a message that is sent twice is said once, and both readers get its answer", async () => {
    const client = server.device();
    const transport = new MidstreamChatTransport(client);
    const message: UIMessage = { id: "once", role: "user", parts: [{ type: "text", text: "hello" }] };
    const send = async () => {
      const stream = await transport.sendMessages({
        trigger: "submit-message",
        chatId: "twice",
        messageId: undefined,
        messages: [message],
        abortSignal: undefined,
      });
      const chunks = [];
      for await (const chunk of stream as unknown as AsyncIterable<UIMessageChunk>) {
        chunks.push(chunk.type);
      }
      return chunks;
    };
    const [first, second] = await Promise.all([send(), send()]);
    expect([first?.at(-1), second?.at(-1)]).toEqual(["finish", "finish"]);
    expect((await send()).at(-1)).toBe("finish");
    const { messages } = await client.session("twice");
    expect(messages.map(({ role }) => role)).toEqual(["user", "agent"]);
  });

  test("to make an answer again is refused with what to do, and nothing is lost", async () => {
    const client = server.device();
    const page = open(client, <Again id="again" />);
    say(page, "hello");
    await endsIn(page, "said “hello”");
    fireEvent.click(page.getByText("again"));
    await waitFor(() => expect(page.container.textContent).toContain("Fork the session"));
    expect(page.getAllByRole("article").length).toBe(2);
  });
});
