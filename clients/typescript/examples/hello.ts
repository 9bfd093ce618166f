import { Client, mutations, type SocketMaker, systemEnvironment } from "midstream-client";
import { WebSocket } from "ws"; // Node before 22 has none of its own

export async function hello(url: string): Promise<string> {
  const client = new Client(url, { environment: systemEnvironment(WebSocket as unknown as SocketMaker) });
  const session = await client.session("hello", { create: true });
  let streamed = "";
  const following = (async () => {
    for await (const mutation of mutations(session)) {
      if (mutation.variant === "delta") {
        streamed += mutation.payload.text; // or look at session.messages, which is whole at any time
      }
    }
  })();
  const handle = await session.prompt("hello");
  const turn = await handle.finished();
  const { isEqual } = await session.verify();
  client.close();
  await following;
  return `${turn.state}, equal to the server: ${isEqual}, ${streamed.length} characters came as they were written`;
}
