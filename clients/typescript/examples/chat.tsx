import type { Client, Message, Part } from "midstream-client";
import { MidstreamProvider, useSession, useSessions, useTurnElapsed } from "midstream-client/react";
import { type FormEvent, memo, useState } from "react";

export function App({ client }: { readonly client: Client }) {
  const [id, show] = useState("demo");
  return (
    <MidstreamProvider client={client}>
      <Chats show={show} />
      <Chat id={id} />
    </MidstreamProvider>
  );
}

function Chats({ show }: { readonly show: (id: string) => void }) {
  return useSessions().sessions.map(({ session_id, title, running_turn_id }) => (
    <button type="button" key={session_id} onClick={() => show(session_id)}>
      {title ?? session_id} {running_turn_id && "…"}
    </button>
  ));
}

function Chat({ id }: { readonly id: string }) {
  const { session, messages, pending, interactions, turn, state, error } = useSession(id, { create: true });
  const elapsed = useTurnElapsed(session);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void session.prompt(String(new FormData(event.currentTarget).get("text")));
    event.currentTarget.reset();
  };
  return (
    <>
      <p role="status">{error?.message ?? state}</p>
      {messages.map((message) => (
        <MessageView key={message.message_id} message={message} />
      ))}
      {pending.map(({ message_id }) => (
        <p key={message_id}>Not sent yet</p>
      ))}
      {interactions.map(({ part }) => (
        <button
          type="button"
          key={part.interaction_id}
          onClick={() => void session.approve(part.interaction_id)}
        >
          {part.request.title} Yes
        </button>
      ))}
      {elapsed && elapsed.silentMs > 3000 && `${elapsed.phase} for ${Math.round(elapsed.phaseMs / 1000)} s`}
      {turn && (
        <button type="button" onClick={() => void session.stop()}>
          Stop
        </button>
      )}
      <form onSubmit={send}>
        <input name="text" aria-label="Message" />
      </form>
    </>
  );
}

/** Renders again only when its own message changed. */
const MessageView = memo(({ message }: { readonly message: Message }) => (
  <article>
    {message.parts.map((part) => (
      <PartView key={part.part_id} part={part} />
    ))}
  </article>
));

function PartView({ part }: { readonly part: Part }) {
  switch (part.type) {
    case "text":
      return part.text;
    case "tool":
      return (
        <code>
          {part.tool_name}: {part.error ?? part.state}
        </code>
      );
    case "error":
      return <p role="alert">{part.message}</p>;
    default:
      return null; // reasoning, sources, files, …
  }
}
