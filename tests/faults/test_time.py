"""A wall clock that jumps: no time goes back, and nothing waits longer than was said."""

from __future__ import annotations

import asyncio
from pathlib import Path

from midstream.protocol.calls import SessionResult
from midstream.protocol.model import InteractionPart
from midstream.server.clock import SystemClock
from tests.end_to_end.stage import Stage
from tests.laws.reader import Reader

HOUR_MS = 3_600_000


class JumpingClock(SystemClock):
    """The machine's clocks, of which somebody sets the wall."""

    def __init__(self) -> None:
        """Begin right."""
        self.wrong_ms = 0

    def wall_ms(self) -> int:
        """Return what the wall shows."""
        return super().wall_ms() + self.wrong_ms


def pending(reader: Reader) -> list[InteractionPart]:
    """Return what is asked now."""
    return [
        part
        for message in reader.replica.messages()
        for part in message.parts
        if isinstance(part, InteractionPart) and part.status == "pending"
    ]


async def test_a_wall_that_is_set_back_an_hour_sets_no_time_back_and_makes_nobody_wait(
    tmp_path: Path,
) -> None:
    """Messages go on at the last time given; a question expires after its seconds all the same."""
    clock = JumpingClock()
    stage = Stage(tmp_path / "chat.db", clock=clock)
    await stage.start()
    await stage.create("s")
    reader = await stage.reader()
    turn = await stage.turn("first")
    clock.wrong_ms = -HOUR_MS
    async with turn.step() as step:
        call = await step.tool("t", input=1)
    asked = asyncio.create_task(turn.ask_approval(call, title="May I?", expires_in=0.3))
    await reader.line.until(lambda: bool(pending(reader)))
    assert not (await asked).approved
    await stage.finish(turn, reader)
    await stage.prompt("second")
    await stage.puppet.next()
    await reader.line.until(lambda: len(reader.replica.messages()) >= 3)
    times = [one.created_at for one in reader.replica.messages()]
    assert times == sorted(times)
    assert max(times) - min(times) < HOUR_MS // 2
    await stage.proves(reader)
    await stage.close()


async def test_a_wall_that_jumps_a_day_ahead_expires_what_is_over_by_it_and_nothing_else(
    tmp_path: Path,
) -> None:
    """Questions end, as after a sleep of the machine; connections, subscriptions and turns go on."""
    clock = JumpingClock()
    stage = Stage(tmp_path / "chat.db", clock=clock)
    await stage.start()
    await stage.create("s")
    reader = await stage.reader()
    turn = await stage.turn("first")
    async with turn.step() as step:
        call = await step.tool("t", input=1)
    asked = asyncio.create_task(turn.ask_approval(call, title="May I?", expires_in=3600))
    await reader.line.until(lambda: bool(pending(reader)))
    clock.wrong_ms = 24 * HOUR_MS
    await (await stage.user()).ask(SessionResult, "sessions.get", session_id="s")
    assert not (await asked).approved
    assert reader.line.is_open
    assert reader.replica.running_turn is not None
    await stage.finish(turn, reader)
    ahead = max(one.updated_at for one in reader.replica.messages())
    clock.wrong_ms = 0
    turn = await stage.turn("second")
    await reader.line.until(lambda: len(reader.replica.messages()) >= 3)
    assert reader.replica.messages()[2].created_at >= ahead
    async with turn.step() as step:
        call = await step.tool("t", input=1)
    # of a question that is asked while the times stand still, the seconds are the monotonic clock's
    assert not (await turn.ask_approval(call, title="May I?", expires_in=0.3)).approved
    await stage.finish(turn, reader)
    await stage.proves(reader)
    await stage.close()
