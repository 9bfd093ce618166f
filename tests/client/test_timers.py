"""A timer comes once or not at all, and what it raises is heard."""

import asyncio

from midstream.client.timers import Timers


async def test_a_timer_comes_once() -> None:
    """After its time it is called, and then it is forgotten."""
    timers, came = Timers(lambda _: None), asyncio.Event()
    timers.later(0, came.set)
    assert len(timers) == 1
    await came.wait()
    assert len(timers) == 0


async def test_a_cancelled_timer_does_not_come() -> None:
    """One alone, or all that are left; what was made later comes all the same."""
    timers, came = Timers(lambda _: None), asyncio.Event()
    calls: list[str] = []
    timers.later(0, lambda: calls.append("cancelled")).cancel()
    timers.later(0, lambda: calls.append("cancelled with all"))
    timers.cancel_all()
    assert len(timers) == 0
    timers.later(0, came.set)
    await came.wait()
    assert calls == []


async def test_what_a_timer_raises_is_reported() -> None:
    """It does not vanish in the event loop."""
    failures: asyncio.Queue[Exception] = asyncio.Queue()
    timers = Timers(failures.put_nowait)
    error = ValueError("x")

    def fail() -> None:
        raise error

    timers.later(0, fail)
    assert await failures.get() is error
