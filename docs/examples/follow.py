"""Send one prompt, print the answer as it streams, approve what is asked, and end with the turn."""

import asyncio
import sys

from midstream.client import Client, Session, TextAppended


async def follow(session: Session) -> None:
    async for mutation in session.mutations():
        if isinstance(mutation.payload, TextAppended):
            print(mutation.payload.text, end="", flush=True)
        for asked in await session.interactions() if session.info.pending_interactions else []:
            await session.approve(asked.interaction.interaction_id)


async def main(url: str, session_id: str, text: str) -> None:
    async with Client(url) as client:
        session = await client.session(session_id, create=True)
        following = asyncio.create_task(follow(session))
        turn = await session.prompt(text)
        print(f"\n{(await turn.finished()).state}")
        following.cancel()


asyncio.run(main(*sys.argv[1:]))
