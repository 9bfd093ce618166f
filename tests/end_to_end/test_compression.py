"""Compression changes nothing that a client shows, and pays where a page is long."""

from __future__ import annotations

import random

from midstream.client import Client
from tests.end_to_end.stage import OpenStage, Stage
from tests.proxy import Proxy

PAGE = 10
WORDS = (
    "the page",
    "is read once",
    "and sent to all",
    "who ask for it",
    "while nothing",
    "changes in between",
)


def words(seed: int) -> str:
    """Return 2 KB that read like text."""
    return " ".join(random.Random(seed).choices(WORDS, k=170))


def counting(proxy: Proxy) -> list[int]:
    """Note how long the server's messages were on the wire."""
    lengths: list[int] = []

    def pick(payload: bytes) -> bool:
        lengths.append(len(payload))
        return False

    proxy.drop(pick)
    return lengths


async def shown(stage: Stage) -> tuple[list[object], int]:
    """Return what a client shows, and the bytes that the server sent for it."""
    proxy = await stage.proxy()
    lengths = counting(proxy)
    async with Client(proxy.url) as client:
        session = await client.session("s", limit=PAGE)
        return [*session.messages, session.info], sum(lengths)


async def test_a_page_is_the_same_with_and_without_compression_and_half_as_long(
    open_stage: OpenStage,
) -> None:
    """Whichever end would have none of it."""
    stage = await open_stage(compression=True)
    reader = await stage.reader()
    for seed in range(PAGE):
        await stage.finish(await stage.turn(words(seed)), reader)
    compressed, few = await shown(stage)
    stage.settings["compression"] = False
    await stage.restart()
    plain, many = await shown(stage)
    assert len(plain) == PAGE + 1
    assert compressed == plain
    assert few < many / 2


async def test_a_long_prompt_is_taken_whole(open_stage: OpenStage) -> None:
    """Compressed by the client, in one message or in chunks."""
    stage = await open_stage()
    client = await stage.client()
    session = await client.session("s")
    for text in ("short", words(1), "".join(words(seed) for seed in range(100))):
        await session.prompt(text)
        turn = await stage.puppet.next()
        assert turn.prompt_text == text
        stage.puppet.end(turn)
        await session.until(lambda: session.turn is None)
