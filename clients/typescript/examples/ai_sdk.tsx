import { useChat } from "@ai-sdk/react";
import { MidstreamChatTransport, useSyncedChat } from "midstream-client/ai-sdk";
import { useClient } from "midstream-client/react";
import { type FormEvent, useMemo } from "react";

export function AiSdkChat({ id }: { readonly id: string }) {
  const client = useClient(); // of the <MidstreamProvider> above
  const transport = useMemo(() => new MidstreamChatTransport(client), [client]);
  const chat = useSyncedChat(useChat({ id, transport }));
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void chat.sendMessage({ text: String(new FormData(event.currentTarget).get("text")) });
    event.currentTarget.reset();
  };
  return (
    <>
      {chat.messages.map(({ id, parts }) => (
        <article key={id}>{parts.map((part) => (part.type === "text" ? part.text : null))}</article>
      ))}
      {chat.status === "streaming" && (
        <button type="button" onClick={() => void chat.stop()}>
          Stop
        </button>
      )}
      <form onSubmit={send}>
        <input name="text" aria-label="Message" />
      </form>
    </>
  );
}
