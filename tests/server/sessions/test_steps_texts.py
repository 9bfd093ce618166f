"""Text that streams: joined, bounded, in order, and never stored broken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.protocol import calls
from midstream.protocol.errors import IllegalTransition, LimitExceeded
from midstream.protocol.frames import Delta, ShortDelta
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart
from midstream.server.sessions.services import Settings
from midstream.server.sessions.ticks import WAITING_BYTES
from midstream.server.sessions.versions import TIME_BLOCK_MS
from tests.server.sessions.agent_turn import answer, begin
from tests.server.sessions.house import Street, in_simulation, refusal

T = TypeVar("T")


@in_simulation
async def test_deltas_of_one_tick_are_one_frame_for_each_part(street: Street) -> None:
    """In the order in which the parts began to wait; nothing of it is stored before the step ends."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as one, step.text() as two:
            await one.append("first ")
            await asyncio.sleep(0.001)
            before = len(recorder.deltas)
            for number in range(50):
                await (two if number % 2 == 0 else one).append(str(number % 10))
            await asyncio.sleep(0.02)
            merged = recorder.deltas[before:]
            assert [(type(delta), len(delta.text)) for delta in merged] == [(ShortDelta, 25), (Delta, 25)]
            stored = (await house.page(stored=True)).items[1]
            assert [part.text for part in stored.parts if isinstance(part, TextPart)] == [""]
        assert [len(str(part["text"])) for part in await answer(house, recorder)] == [31, 25]


@in_simulation
async def test_ten_thousand_appends_in_a_moment_give_versions_that_only_increase(
    street: Street,
) -> None:
    """Each frame follows on the one before, and no character is lost or doubled."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as one, step.reasoning() as two:
            others = house.post("sessions.get", calls.SessionParams(session_id="s"))
            for number in range(10_000):
                await (one if number % 3 else two).append(str(number % 10))
                assert others.done() or number < 1_000, "an agent that never waits must let others run"
        assert recorder.versions == sorted(set(recorder.versions))
        first, second = await answer(house, recorder)
        assert first["text"] == "".join(str(number % 10) for number in range(10_000) if number % 3)
        assert second["text"] == "".join(str(number % 10) for number in range(0, 10_000, 3))


@in_simulation
async def test_text_that_comes_while_a_commit_is_open_waits_for_it(street: Street) -> None:
    """A version is given once, to the change that was begun first; the text follows it."""
    async with street.house(settings=Settings(tick_seconds=0)) as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as text:
            call = await step.tool("t", input=1)

            async def write() -> None:
                for number in range(300):
                    await text.append(str(number % 10))
                    await asyncio.sleep(0)

            async def move() -> None:
                for number in range(60):
                    await call.progress(number)

            await asyncio.gather(write(), move())
            await call.complete(60)
        assert recorder.versions == list(range(recorder.versions[0], recorder.versions[-1] + 1))
        said, _ = await answer(house, recorder)
        assert said["text"] == "0123456789" * 30


@in_simulation
async def test_a_producer_that_is_ahead_is_slowed(street: Street) -> None:
    """What waits is bounded, however fast it comes."""
    async with street.house(settings=Settings(tick_seconds=0.01)) as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as text:
            for _ in range(100):
                await text.append("x" * (WAITING_BYTES // 4))
        assert max(len(delta.text) for delta in recorder.deltas) <= WAITING_BYTES + WAITING_BYTES // 4
        assert street.loop.time() > 1_000 + 23 * 0.01


@in_simulation
async def test_streaming_goes_on_past_any_ceiling(street: Street) -> None:
    """A write of its own raises it; no version is left out."""
    async with street.house(settings=Settings(tick_seconds=0)) as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as text:
            for _ in range(9_000):
                await text.append("x")
                await asyncio.sleep(0.001)
        assert len(recorder.deltas) == 9_000
        assert len(str((await answer(house, recorder))[0]["text"])) == 9_000


@in_simulation
async def test_code_points_that_were_cut_are_joined_and_halves_are_refused(street: Street) -> None:
    """In texts and in arguments; what was refused is nowhere."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("t")
            async with step.text() as text:
                for append in (text.append, call.append_input):
                    for piece in ("a\ud83d", "\ude42b", "\ud83d\ude42"):
                        await append(piece)
                    for bad in ("\ude42", "x\ud83dy"):
                        with pytest.raises(ValueError, match="surrogate"):
                            await append(bad)
                    with pytest.raises(TypeError):
                        await append(b"bytes")  # type: ignore[arg-type]  # what an untyped agent does
            await call.fail("enough")
        tool, said = await answer(house, recorder)
        assert tool["input_text"] == said["text"] == "a🙂b🙂"


@in_simulation
async def test_a_text_that_ends_inside_a_code_point_fails(street: Street) -> None:
    """It is not stored broken; what came before stays."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        with pytest.raises(ValueError, match="inside a code point"):
            async with turn.step() as step, step.text() as text:
                await text.append("a\ud83d")
        ended = await house.complete(turn)
        assert ended.state == "completed"
        assert await answer(house, recorder) == [{"type": "text", "text": "a", "state": "done"}]


@in_simulation
async def test_a_text_outside_its_block_takes_nothing(street: Street) -> None:
    """Before it is entered, and after it was left; what was appended is not lost silently."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            text = step.text()
            assert isinstance(await refusal(text.append("early")), IllegalTransition)
            async with text:
                await text.append("in time")
                await text.done(provider_metadata={"p": {"k": 1}})
                await text.done()
            assert isinstance(await refusal(text.append("late")), IllegalTransition)
        assert await answer(house, recorder) == [
            {"type": "text", "text": "in time", "state": "done", "provider_metadata": {"p": {"k": 1}}}
        ]


@in_simulation
async def test_a_part_takes_no_more_than_its_limit_in_bytes(street: Street) -> None:
    """Refused by name, at the append that would pass it; other parts are not held to what this one has."""
    limits = Limits(part_bytes=1_000)
    async with street.house(settings=Settings(limits=limits)) as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as one, step.text() as two:
            for _ in range(4):
                await one.append("é" * 100)
                await two.append("x" * 100)
            error = await refusal(one.append("é" * 100))
            assert isinstance(error, LimitExceeded)
            assert (error.details["limit"], error.details["maximum"]) == ("part_bytes", 1_000)
            await two.append("y" * 300)
        assert [len(str(part["text"])) for part in await answer(house, recorder)] == [400, 700]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=6), st.booleans()), max_size=20))
def test_any_texts_are_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, str, bool]]
) -> None:
    """To three parts at once, with and without time between: live, in pages, by digest and in the store."""

    async def story(street: Street) -> None:
        async with street.house() as house:
            recorder, turn = await begin(house)
            async with turn.step() as step, step.text() as a, step.reasoning() as b, step.text() as c:
                for which, text, pause in pieces:
                    await (a, b, c)[which].append(text)
                    if pause:
                        await asyncio.sleep(0.004)
            said = [str(part["text"]) for part in await answer(house, recorder)]
            assert said == ["".join(text for which, text, _ in pieces if which == part) for part in range(3)]

    in_simulation(story)(tmp_path_factory.mktemp("texts"), 1)


@in_simulation
async def test_text_never_waits_for_a_ceiling_to_be_raised(street: Street) -> None:
    """Ceilings go up before they are reached, and what streams meanwhile is published below the old ones."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step, step.text() as text:
            write, writes = house.database.write, 0

            async def slow(job: Callable[[apsw.Connection], T]) -> T:
                nonlocal writes
                writes += 1
                await asyncio.sleep(1)
                return await write(job)

            house.database.write = slow  # type: ignore[method-assign]  # a disk that takes a second
            for number in range(400):
                await text.append("x")
                await asyncio.sleep(0.05)
                assert recorder.deltas[-1].version == recorder.replica.version
                assert len(recorder.deltas) == number + 1
            house.database.write = write  # type: ignore[method-assign]  # as it was
            assert writes >= 20_000 // TIME_BLOCK_MS
