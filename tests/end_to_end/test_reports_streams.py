"""What similar systems get wrong, of agents: texts that break off, are long, are cut, or lie side by side.

Real sockets and a real file.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from midstream.protocol.calls import StopResult
from midstream.protocol.frames import Change
from midstream.protocol.model import ErrorPart, Message, ReasoningPart, TextPart, ToolPart
from midstream.server import ToolCall, TurnFailed
from midstream.server.storage.database import Database
from midstream.server.storage.records import SessionWrite
from midstream.server.storage.schema import migrate
from tests.end_to_end.stage import OpenStage, Stage, last_text, until_ended, until_text
from tests.laws.reader import Reader

if TYPE_CHECKING:
    import apsw

T = TypeVar("T")
WORD = "token 7ü "
LONG = (1_002, 4_097, 100_000)
"""Deltas after which other systems lost text, or took a time that grew with the square."""
FRAME_BYTES = 40
"""What a token may cost a reader: its text, the frame's own bytes, and no more."""
SPLIT = "aü€\U0001f600z\U0001f468‍\U0001f469"
"""Code points of one, two, three and four bytes, some of them in one grapheme."""


def texts(messages: list[Message]) -> list[str]:
    """Return the texts of all text parts."""
    return [part.text for message in messages for part in message.parts if isinstance(part, TextPart)]


@pytest.mark.parametrize("crashes", [False, True], ids=["it says why", "it breaks"])
@pytest.mark.parametrize("tokens", [0, 1, 7, 1_000])
async def test_a_stream_that_fails_after_k_tokens_while_the_client_is_away_leaves_the_tokens_and_the_error(
    open_stage: OpenStage, tokens: int, *, crashes: bool
) -> None:
    """For who was there before, for who comes later, and after a restart."""
    stage = await open_stage()
    gone, watcher = await stage.reader(), await stage.reader()
    turn = await stage.turn()
    await gone.leave()
    text = await (await turn.step().__aenter__()).text().__aenter__()  # nothing closes them
    for _ in range(tokens):
        await text.append(WORD)
    error = OSError("reset by peer") if crashes else TurnFailed("model_gone", "It went away.")
    await stage.finish(turn, watcher, error)
    for _ in range(2):
        await gone.rejoin(await stage.line())
        for reader in (gone, await stage.reader()):
            message = reader.replica.messages()[-1]
            said, failure = message.parts
            assert isinstance(said, TextPart)
            assert isinstance(failure, ErrorPart)
            assert (said.text, said.state, message.state) == (WORD * tokens, "done", "done")
            assert failure.code == ("agent_failed" if crashes else "model_gone")
            assert reader.replica.turns[turn.turn_id].state == "failed"
        await stage.proves(gone)
        await stage.restart()


class CountingDatabase(Database):
    """A database that counts what commits of sessions store.

    Attributes:
        part_bytes: of the parts that were written, each time that they were.
        commits: how many there were.
    """

    part_bytes = 0
    commits = 0

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Count a job, and run it."""
        write = getattr(job, "keywords", {}).get("write")
        if isinstance(write, SessionWrite):
            self.commits += 1
            self.part_bytes += sum(len(body) for *_, body in write.parts)
        return await super().write(job)


async def counted_stage(open_stage: OpenStage) -> tuple[Stage, CountingDatabase]:
    """Open a stage, and return it with its database."""
    opened: list[CountingDatabase] = []

    async def open_database(path: str) -> Database:
        database = await CountingDatabase.open(path, migrate=migrate)
        assert isinstance(database, CountingDatabase)
        opened.append(database)
        return database

    return await open_stage(open_database=open_database), opened[0]


@pytest.mark.parametrize("ends", ["by a stop", "by a failure"])
@pytest.mark.parametrize("deltas", LONG)
async def test_a_text_that_breaks_off_after_many_deltas_is_all_stored_at_a_cost_that_is_linear(
    open_stage: OpenStage, deltas: int, ends: str
) -> None:
    """The disk gets the text once, and a reader each token once, however long it became."""
    stage, database = await counted_stage(open_stage)
    reader = await stage.reader()
    turn = await stage.turn()
    written, commits, heard = database.part_bytes, database.commits, len(reader.line.heard)
    text = await (await turn.step().__aenter__()).text().__aenter__()
    for _ in range(deltas):
        await text.append(WORD)
    if ends == "by a stop":
        await reader.line.ask(StopResult, "stop", session_id="s", turn_id=turn.turn_id)
    else:
        stage.puppet.end(turn, TurnFailed("model_gone", "It went away."))
    await until_ended(reader, turn.turn_id)
    length = len(WORD.encode()) * deltas
    assert database.part_bytes - written < length + 1_000
    assert database.commits - commits < 10 + deltas // 2_000
    frames = reader.line.heard[heard:]
    assert sum(map(len, frames)) < 2 * length + FRAME_BYTES * deltas + 10_000
    assert texts(reader.replica.messages())[-1] == WORD * deltas
    await stage.proves(reader)
    await stage.restart()
    assert texts((await stage.reader()).replica.messages())[-1] == WORD * deltas


@pytest.mark.parametrize("leaves", ["while it reasons", "after it reasoned"])
@pytest.mark.parametrize("returns", ["before the text", "in the text", "after the turn"])
async def test_who_reconnects_between_the_end_of_reasoning_and_the_start_of_text_has_both_in_order(
    open_stage: OpenStage, leaves: str, returns: str
) -> None:
    """With a cursor or without one, and the reasoning is over."""
    stage = await open_stage()
    gone, watcher = await stage.reader(), await stage.reader()
    turn = await stage.turn()
    async with turn.step() as step:
        async with step.reasoning() as reasoning:
            await reasoning.append("Let me ")
            await until_text(gone, "Let me ")
            if leaves == "while it reasons":
                await gone.leave()
            await reasoning.append("think")
        if leaves == "after it reasoned":
            await until_done(gone, "Let me think")
            await gone.leave()
        if returns == "before the text":
            await gone.rejoin(await stage.line())
        async with step.text() as text:
            await text.append("So: ")
            if returns == "in the text":
                await until_text(watcher, "So: ")
                await gone.rejoin(await stage.line())
            await text.append("yes")
    await stage.finish(turn, watcher)
    if returns == "after the turn":
        await gone.rejoin(await stage.line())
    await until_ended(gone, turn.turn_id)
    for reader in (gone, watcher, await stage.reader()):
        thought, said = reader.replica.messages()[-1].parts
        assert isinstance(thought, ReasoningPart)
        assert isinstance(said, TextPart)
        assert (thought.text, thought.state, said.text, said.state) == (
            "Let me think",
            "done",
            "So: yes",
            "done",
        )
    await stage.proves(gone)


async def until_done(reader: Reader, text: str) -> None:
    """Wait until the last part is this text, and is done."""

    def is_done() -> bool:
        message = reader.replica.messages()[-1]
        return last_text(reader) == text and getattr(message.parts[-1], "state", None) == "done"

    await reader.line.until(is_done)


def cut_bytes(at: int) -> list[str]:
    """Cut the text between two bytes, and decode the halves as a client of a byte stream does."""
    decoder, data = codecs.getincrementaldecoder("utf-8")(), SPLIT.encode()
    return [decoder.decode(data[:at]), decoder.decode(data[at:], final=True)]


def cut_halves(at: int) -> list[str]:
    """Cut the text between two UTF-16 code units, as JSON strings cut it that end in half an emoji."""
    data = SPLIT.encode("utf-16-le")
    return [half.decode("utf-16-le", "surrogatepass") for half in (data[: 2 * at], data[2 * at :])]


async def test_text_that_is_cut_inside_a_code_point_at_any_byte_is_identical(open_stage: OpenStage) -> None:
    """In a text and in a tool's arguments, for readers, in the store, and after a restart."""
    stage = await open_stage()
    reader = await stage.reader()
    cuts = [cut_bytes(at) for at in range(len(SPLIT.encode()) + 1)]
    cuts += [cut_halves(at) for at in range(len(SPLIT.encode("utf-16-le")) // 2 + 1)]
    turn = await stage.turn()
    async with turn.step() as step:
        for pieces in cuts:
            call = await step.tool("say")
            async with step.text() as text:
                for piece in pieces:
                    await text.append(piece)
                    await call.append_input(piece)
            await call.ready({})
    await stage.finish(turn, reader)
    await stage.proves(reader)
    await stage.restart()
    for one in (reader, await stage.reader()):
        parts = one.replica.messages()[-1].parts
        assert {part.input_text for part in parts if isinstance(part, ToolPart)} == {SPLIT}
        assert [part.text for part in parts if isinstance(part, TextPart)] == [SPLIT] * len(cuts)


async def test_two_texts_that_close_in_the_same_tick_each_have_their_own_text(open_stage: OpenStage) -> None:
    """Their last words wait for one tick, and their ends come in the same moment."""
    stage = await open_stage(tick_ms=50)
    reader = await stage.reader()
    turn = await stage.turn()
    rounds = 20
    for number in range(rounds):
        async with turn.step() as step:
            one = await step.text().__aenter__()
            other = await step.text().__aenter__()
            for word in ("first ", "second ", "last"):
                await one.append(f"one {word}")
                await other.append(f"other {word}")
            ends = [one.done(), other.done()]
            await asyncio.gather(*(ends if number % 2 else reversed(ends)))
    await stage.finish(turn, reader)
    expected = ["one first one second one last", "other first other second other last"] * rounds
    assert texts(reader.replica.messages())[1:] == expected
    assert len(reader.line.deltas) <= 2 * rounds
    await stage.proves(reader)


async def test_ids_of_calls_that_repeat_in_later_steps_are_calls_of_their_own(open_stage: OpenStage) -> None:
    """Models number their calls anew in each request; a move of one never touches another."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    calls: list[ToolCall] = []
    for number in range(3):
        async with turn.step() as step:
            async with step.text() as text:
                await text.append(f"Step {number}")
            call = await step.tool("look", tool_call_id="call_0")
            await call.append_input(f'{{"step": {number}}}')
            await call.ready({"step": number})
            calls.append(call)
    for number in (2, 0, 1):
        await calls[number].run()
        await calls[number].complete({"of": number})
    await stage.finish(turn, reader)
    parts = reader.replica.messages()[-1].parts
    assert [part.text for part in parts if isinstance(part, TextPart)] == ["Step 0", "Step 1", "Step 2"]
    tools = [part for part in parts if isinstance(part, ToolPart)]
    assert [(tool.tool_call_id, tool.input, tool.output) for tool in tools] == [
        ("call_0", {"step": number}, {"of": number}) for number in range(3)
    ]
    assert len({part.part_id for part in parts}) == len(parts) == 6
    assert len({change.version for change in reader.line.of(Change)}) == len(reader.line.of(Change))
    await stage.proves(reader)
