import asyncio
from contextlib import suppress

from midstream.protocol.values import Value
from midstream.server import Server, Turn


async def agent(turn: Turn) -> None:
    async with turn.step() as step:
        async with step.text() as text:
            for word in ("Hello! You said: ", turn.prompt_text):
                await text.append(word)
        call = await step.tool("delete_file", input={"path": "a.txt"})
    answer = await turn.ask_approval(call, title="Delete a.txt?")
    await (call.execute(delete_file) if answer.approved else call.fail("denied"))


async def delete_file(given: Value) -> Value:
    return {"deleted": given}  # a real tool deletes here: once, whoever approves how often


async def main() -> None:
    async with Server(agent=agent, database="chat.db").listen("127.0.0.1", 8787) as server:
        await server.closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C
        asyncio.run(main())
