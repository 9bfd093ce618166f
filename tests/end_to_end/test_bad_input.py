"""Bad input gets an error frame with a stable code that names the field, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from midstream.protocol.calls import (
    EmptyResult,
    InteractionsResult,
    ListResult,
    SessionResult,
    TurnResult,
    VerifyResult,
)
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import Call, Chunk, ErrorFrame
from midstream.protocol.limits import Limits
from tests.end_to_end.bad_input import CASES, Bad, nested
from tests.end_to_end.stage import Stage, prompt_params, until_text
from tests.laws.line import Line

pytestmark = pytest.mark.asyncio(loop_scope="module")
BOTH = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


@dataclass
class Busy:
    """A server whose session `s` has a turn that runs and asks something, and an input that waits."""

    stage: Stage
    watcher: Line
    interaction_id: str

    async def everything(self) -> list[Any]:
        """Return all that a client can see: versions, digests, turns, questions, sessions."""
        everyone = {"from_sequence": 1, "to_sequence": 200, "include_internal": True}
        return [
            await self.watcher.ask(SessionResult, "sessions.get", session_id="s"),
            await self.watcher.ask(VerifyResult, "verify", session_id="s", **everyone),
            await self.watcher.ask(TurnResult, "turn", session_id="s"),
            await self.watcher.ask(InteractionsResult, "interactions", session_id="s"),
            await self.watcher.ask(ListResult, "sessions.list"),
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def busy(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Busy]:
    """One server for all cases, since none may change it."""
    limits = Limits(calls_per_second=100_000)
    stage = Stage(tmp_path_factory.mktemp("bad") / "chat.db", limits=limits)
    await stage.start()
    await stage.create("s")
    reader = await stage.reader()
    turn = await stage.turn()
    async with turn.step() as step, step.text() as text:
        await text.append("Working")
        await until_text(reader, "Working")
    asking = asyncio.create_task(turn.ask_approval(title="May I?"))
    await stage.prompt("And then")
    await reader.line.until(
        lambda: bool(reader.replica.session and reader.replica.session.pending_interactions)
    )
    watcher = await stage.line()
    pending = await watcher.ask(InteractionsResult, "interactions", session_id="s")
    yield Busy(stage, watcher, pending.items[0].interaction.interaction_id)
    asking.cancel()
    await stage.close()


@pytest.mark.parametrize(
    ("case", "codec"),
    [
        pytest.param(case, codec, id=f"{case.name}, in {codec.name}")
        for case in CASES
        for codec in (MSGPACK, JSON)
        if case.can_be_said_in(codec)
    ],
)
async def test_bad_input_is_refused_by_code_and_field_and_changes_nothing(
    busy: Busy, case: Bad, codec: Codec
) -> None:
    """The connection lives, but for broken framing, which closes it with 4500."""
    message = case.message(codec, busy.interaction_id)
    before = await busy.everything()
    line = await busy.stage.line(codec=codec)
    await line.send_raw(message)
    await line.until(lambda: bool(line.of(ErrorFrame)))
    await check_refusal(case, line.of(ErrorFrame)[0], line)
    assert await busy.everything() == before
    await line.close()


async def check_refusal(case: Bad, refusal: ErrorFrame, line: Line) -> None:
    """Compare the error with what is expected, and look whether the connection lives."""
    assert refusal.error.code == case.code
    assert refusal.error.message
    details = refusal.error.details
    assert {name: details.get(name) for name in case.details} == case.details
    assert str(details.get("field", "")).startswith(case.at)
    assert refusal.id == case.call_id
    if case.closes is None:
        await line.ask(TurnResult, "turn", session_id="s")
        assert len(line.of(ErrorFrame)) == 1
    else:
        await line.until(lambda: not line.is_open)
        assert line.code == case.closes


@BOTH
async def test_64_levels_of_nesting_are_taken(busy: Busy, codec: Codec) -> None:
    """The limit is what may be, and one more may not."""
    line = await busy.stage.line(codec=codec)
    assert await line.ask(EmptyResult, "signal", session_id="s", name="n", data=nested(62)) == EmptyResult()
    await line.close()


@BOTH
async def test_a_message_of_the_other_kind_is_broken_framing(busy: Busy, codec: Codec) -> None:
    """Text on a binary connection, and bytes on a textual one, even if they are a good frame of the other."""
    before = await busy.everything()
    line = await busy.stage.line(codec=codec)
    other = JSON if codec.binary else MSGPACK
    good = other.encode(["call", 7, "turn", {"session_id": "s"}])
    await line.send_raw(good.decode() if codec.binary else good)
    await line.until(lambda: not line.is_open)
    assert [error.code for error in line.refusals] == ["malformed"]
    assert line.code == 4500
    assert await busy.everything() == before


@BOTH
async def test_chunks_that_pass_the_longest_frame_are_refused_once_and_the_connection_lives(
    busy: Busy, codec: Codec
) -> None:
    """What comes of the frame after the refusal is ignored; the next frame is read."""
    before = await busy.everything()
    line = await busy.stage.line(codec=codec)
    piece = b"x" * 60_000 if codec.binary else "x" * 60_000
    for number in range(40):
        await line.send(Chunk(1, number == 39, piece))
    await line.until(lambda: bool(line.refusals))
    assert isinstance((await line.ask(TurnResult, "turn", session_id="s")), TurnResult)
    assert [(error.code, error.details["limit"]) for error in line.refusals] == [
        ("limit_exceeded", "frame_bytes")
    ]
    assert await busy.everything() == before
    await line.close()


@BOTH
async def test_a_frame_of_the_longest_length_is_read(busy: Busy, codec: Codec) -> None:
    """In chunks, as it must be sent: a call that is long, and refused for what it says."""
    line = await busy.stage.line(codec=codec)
    params = prompt_params("x" * 1_000_000, "other", "long")
    data = codec.encode(Call(7, "prompt", codec.raw(params)))
    for start in range(0, len(data), 60_000):
        piece = data[start : start + 60_000]
        await line.send(Chunk(1, start + 60_000 >= len(data), piece if codec.binary else piece.decode()))
    await line.until(lambda: bool(line.refusals))
    assert [error.code for error in line.refusals] == ["not_found"]
    await line.close()


@BOTH
async def test_a_message_far_above_the_longest_ends_the_connection(busy: Busy, codec: Codec) -> None:
    """No client that obeys sends it; the others go on."""
    before = await busy.everything()
    line = await busy.stage.line(codec=codec)
    await line.send_raw(b"x" * 3_000_000 if codec.binary else "x" * 3_000_000)
    await line.until(lambda: not line.is_open)
    assert line.code == 1009
    assert await busy.everything() == before
