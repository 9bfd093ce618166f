"""What similar systems get wrong, 7 to 10: sending twice, clocks, and what came first."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from midstream.client.clock import SystemClock as ClientClock
from midstream.protocol.calls import PromptResult
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import IdempotencyConflict
from midstream.protocol.frames import Change, Result
from midstream.protocol.model import Part, TextPart
from midstream.server.clock import SystemClock
from tests.end_to_end.stage import OpenStage, prompt_params
from tests.laws.line import DELTAS, ChannelFrame
from tests.laws.reader import Reader

TEN_MINUTES_MS = 600_000


def answers_a_prompt(payload: bytes) -> bool:
    """Say whether a frame is the answer of a prompt."""
    frame = MSGPACK.decode_server_frame(payload)
    return isinstance(frame, Result) and b"message_id" in bytes(frame.result)


async def test_a_prompt_whose_answer_was_lost_is_one_message_and_one_turn_however_often_it_is_sent(
    open_stage: OpenStage,
) -> None:
    """Again on the same connection, twice at once on others, after its turn, and after a restart."""
    stage = await open_stage()
    proxy = await stage.proxy()
    proxy.drop(answers_a_prompt)
    line = await stage.line(proxy.url)
    params = prompt_params("Once", "s", "p1")
    for _ in range(2):
        await line.begin("prompt", params)
    await proxy.until(lambda: len(proxy.dropped) == 2)
    await line.close()
    others = [await stage.line() for _ in range(2)]
    again = await asyncio.gather(
        *(other.ask(PromptResult, "prompt", **params) for other in others for _ in range(2))
    )
    turn = await stage.puppet.next()
    assert again == [PromptResult(state="started", message_id="p1", turn_id=turn.turn_id)] * 4
    reader = await stage.reader()
    await stage.finish(turn, reader)
    for _ in range(2):
        asked = await (await stage.user()).ask(PromptResult, "prompt", **params)
        assert asked == again[0]
        with pytest.raises(IdempotencyConflict):
            await (await stage.user()).ask(PromptResult, "prompt", **prompt_params("Twice", "s", "p1"))
        await stage.restart()
    fresh = await stage.reader()
    assert [message.message_id for message in fresh.replica.messages()] == ["p1"]
    assert list(fresh.replica.turns) == [turn.turn_id]
    assert stage.puppet.idle


class WrongClock(ClientClock):
    """A clock whose wall is minutes off."""

    def __init__(self, ms: int) -> None:
        self._ms = ms

    def wall_ms(self) -> int:
        """Return the wrong time."""
        return super().wall_ms() + self._ms


async def test_clients_whose_clocks_are_ten_minutes_off_have_no_effect_on_order_or_times(
    open_stage: OpenStage,
) -> None:
    """Messages stand in the order in which they were accepted, at the server's times."""
    stage = await open_stage()
    clock = SystemClock()
    began = clock.wall_ms()
    sessions = [
        await (await stage.client(clock=WrongClock(ms))).session("s")
        for ms in (-TEN_MINUTES_MS, TEN_MINUTES_MS)
    ]
    said: list[str] = []
    for number in range(6):
        handle = await sessions[number % 2].prompt(f"{number}")
        turn = await stage.puppet.next()
        stage.puppet.end(turn)
        await handle.finished()
        said.append(handle.message_id)
    reader = await stage.reader()
    messages = reader.replica.messages()
    assert [message.message_id for message in messages] == said
    assert [message.sequence for message in messages] == [1, 2, 3, 4, 5, 6]
    times = [message.created_at for message in messages]
    assert times == sorted(times)
    assert began <= times[0]
    assert times[-1] <= clock.wall_ms()
    for session in sessions:
        await session.until(lambda session=session: session.messages == messages)  # type: ignore[misc]  # bound


def kinds(reader: Reader) -> list[str]:
    """Return the types of the last message's parts, in order."""
    parts: list[Part] = reader.replica.messages()[-1].parts
    assert [part.sequence for part in parts] == list(range(1, len(parts) + 1))
    return [str(part.__struct_config__.tag) for part in parts]


async def test_parts_stand_in_the_order_of_their_first_appearance_before_and_after_a_reload(
    open_stage: OpenStage,
) -> None:
    """Reasoning starts, a tool starts, the tool ends, the reasoning ends."""
    stage = await open_stage()
    reader = await stage.reader()
    turn = await stage.turn()
    async with turn.step() as step:
        reasoning = step.reasoning()
        await reasoning.__aenter__()
        await reasoning.append("I wonder")
        call = await step.tool("look", input={})
        await reasoning.append(", and look")
        await call.run()
        await call.complete({})
        await reasoning.append(", and know")
        async with step.text() as text:
            await text.append("It is so.")
            await reasoning.done()
    await stage.finish(turn, reader)
    expected = ["reasoning", "tool", "text"]
    assert kinds(reader) == expected
    await stage.restart()
    reloaded = await stage.reader()
    assert kinds(reloaded) == expected
    assert reloaded.replica.messages() == reader.replica.messages()


class StoppedClock(SystemClock):
    """A wall that stands still, while time goes on."""

    def __init__(self) -> None:
        self._stands_at = super().wall_ms()

    def wall_ms(self) -> int:
        """Return the same moment."""
        return self._stands_at


async def test_ten_thousand_mutations_in_one_millisecond_have_versions_and_revisions_that_strictly_increase(
    open_stage: OpenStage,
) -> None:
    """Nothing is ordered by time."""
    stage = await open_stage(clock=StoppedClock(), tick_ms=0, tick_limit_ms=0)
    reader = await stage.reader(chronicle=None)
    turn = await stage.turn()
    revisions: list[int] = []
    take = reader.line.routes[reader.channel or 0]

    async def note(frame: ChannelFrame) -> None:
        await take(frame)
        revisions.append(max(message.revision for message in reader.replica.messages()))

    reader.line.routes[reader.channel or 0] = note
    async with turn.step() as step, step.text() as one, step.text() as other:
        while len(revisions) < 10_000:
            await one.append("x")
            await other.append("y")
            await asyncio.sleep(0)
    await stage.finish(turn, reader)
    frames = [frame for frame in reader.line.frames if isinstance(frame, (*DELTAS, Change))]
    versions = [frame.version for frame in frames]
    assert all(later == earlier + 1 for earlier, later in pairwise(versions))
    assert len(reader.line.deltas) > 9_900
    assert all(earlier < later for earlier, later in pairwise(revisions))
    messages = reader.replica.messages()
    assert (
        len({message.created_at for message in messages} | {message.updated_at for message in messages}) == 1
    )
    assert {part.text[:1] for part in messages[-1].parts if isinstance(part, TextPart)} == {"x", "y"}
    await stage.proves(reader)
