"""What similar systems get wrong, 11 to 13: readers that do not read, and things that are large."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import msgspec
import pytest

from midstream.protocol.calls import MessagesParams, Page, PromptResult, SessionResult, TurnResult
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.model import TextPart, ToolPart
from midstream.protocol.values import Value
from tests.end_to_end.process import ServerProcess
from tests.end_to_end.seeding import is_internal, seed
from tests.end_to_end.stage import OpenStage, Stage, prompt_params, until_ended
from tests.laws.line import Line
from tests.laws.reader import Reader

DELTAS = 1_000_000
SLEEPERS = 10
STALL_MS = 8_000
"""A heartbeat longer than the flood takes: what is not read is held for all that time."""
OUTBOX_BYTES = 4 * 1024 * 1024
"""Room for a reader that reads, on a machine where it gets a core only now and then."""
MOST_MEMORY = 48 * 1024 * 1024
"""What the flood may add to the server's memory. It is 19 MB; one copy of all that flows for each sleeper
would be 90 MB."""
TOOL_OUTPUT_BYTES = 5_000_000
SEEDED = 5_000


async def reader_of(server: ServerProcess) -> Reader:
    """Join the session on a line of its own."""
    reader = Reader(await Line.open(server.url), "s")
    await reader.join()
    return reader


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
async def test_clients_that_never_read_while_a_million_deltas_flow_cost_bounded_memory_and_are_cut(
    tmp_path: Path,
) -> None:
    """Who reads is not disturbed: it gets every frame and needs no sync."""
    server = await ServerProcess.start(
        tmp_path / "chat.db", "flood", heartbeat_ms=STALL_MS, tick_ms=1, outbox_bytes=OUTBOX_BYTES
    )
    user = await Line.open(server.url)
    await user.ask(SessionResult, "sessions.create", session_id="s")
    reader = await reader_of(server)
    sleepers = [await reader_of(server) for _ in range(SLEEPERS)]
    for sleeper in sleepers:
        sleeper.line.stop_reading()
    before, _ = server.memory()
    params = prompt_params(f"{DELTAS} word", "s", "flood")
    turn_id = (await user.ask(PromptResult, "prompt", **params)).turn_id
    assert isinstance(turn_id, str)
    await until_ended(reader, turn_id)
    _, most = server.memory()
    await server.until(lambda: len(server.logged) == SLEEPERS)
    assert {line["event"] for line in server.logged} == {"connection_cut"}
    assert len({line["connection_id"] for line in server.logged}) == SLEEPERS
    assert not any("turn_id" in line or "session_id" in line for line in server.logged)
    said = reader.replica.messages()[-1]
    assert sum(len(part.text) for part in said.parts if isinstance(part, TextPart)) == 4 * DELTAS
    assert (reader.gaps, reader.tags.count("sync")) == ([], 0)
    await reader.prove()
    assert most - before < MOST_MEMORY
    for line in (*(sleeper.line for sleeper in sleepers), reader.line, user):
        await line.close()
    assert await server.stop() == 0


async def test_a_tool_output_of_5_megabytes_is_stored_and_the_connection_lives(open_stage: OpenStage) -> None:
    """It comes in chunks, to those who are there, to those who come later, and after a restart."""
    stage = await open_stage()
    reader = await stage.reader()
    session = await (await stage.client()).session("s")
    turn = await stage.turn()
    output: Value = {"page": "0123456789" * (TOOL_OUTPUT_BYTES // 10)}
    async with turn.step() as step:
        call = await step.tool("fetch", input={})
        await call.run()
        await call.complete(output)
    await stage.finish(turn, reader)
    assert output_of(reader) == output
    assert (await reader.line.ask(TurnResult, "turn", session_id="s")).turn is None
    assert sum(type(frame).__name__ == "Chunk" for frame in reader.line.raw) > 50
    await session.until(lambda: session.messages == reader.replica.messages())
    await stage.proves(reader)
    await stage.restart()
    assert output_of(await stage.reader()) == output


def output_of(reader: Reader) -> object:
    """Return what the tool gave."""
    part = reader.replica.messages()[-1].parts[-1]
    assert isinstance(part, ToolPart)
    return part.output


async def test_five_thousand_messages_are_paged_without_loss_or_repeat_while_writes_land(
    tmp_path: Path,
) -> None:
    """The first page is within its limits, and `has_more` counts what the reader may see."""
    await seed(tmp_path / "chat.db", "s", SEEDED)
    stage = Stage(tmp_path / "chat.db", history_bytes=2**20)
    await stage.start()
    for internal in (False, True):
        reader = await stage.reader(limit=50, include_internal=internal, chronicle=None)
        first = await reader.line.ask(Page, "messages", **plain(MessagesParams(session_id="s")))
        assert len(first.items) == 50
        assert (first.has_more, first.next_before_sequence) == (True, first.start_sequence)
        await page_while_writing(stage, reader)
        held = reader.replica.messages()
        expected = [
            n for n in range(1, held[-1].sequence + 1) if internal or n > SEEDED or not is_internal(n)
        ]
        assert [message.sequence for message in held] == expected
        assert len({message.message_id for message in held}) == len(expected)
        await stage.proves(reader)
    await walk(stage)
    await stage.close()


async def page_while_writing(stage: Stage, reader: Reader) -> None:
    """Read every page there is; between any two of them something is written."""
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        while reader.replica.has_more:
            asked = await reader.begin_page(200)
            await text.append("word ")
            await asked
    await stage.finish(turn, reader)


async def walk(stage: Stage) -> None:
    """Walk all pages as a program without a replica would; the last one says that it is the last."""
    line, seen = await stage.line(), list[int]()
    before: int | msgspec.UnsetType = msgspec.UNSET
    while True:
        params = MessagesParams(session_id="s", limit=200, before_sequence=before)
        page = await line.ask(Page, "messages", **plain(params))
        assert len(msgspec.msgpack.encode(page)) <= DEFAULT_LIMITS.page_bytes
        assert len(page.items) <= 200
        seen[:0] = [message.sequence for message in page.items]
        if not page.has_more:
            break
        assert isinstance(page.next_before_sequence, int)
        before = page.next_before_sequence
    assert seen == sorted(set(seen))
    assert seen[:1] == [4]
    assert page.total == seen[-1]


def plain(params: msgspec.Struct) -> dict[str, Value]:
    """Return params as a plain map."""
    return cast("dict[str, Value]", msgspec.to_builtins(params))
