"""Laws of letting newcomers in."""

import asyncio

from midstream.server.connections.door import AT_A_TIME, Door


async def test_who_is_alone_does_not_wait() -> None:
    """Nor does who comes when those before have had their time."""
    door = Door()
    for _ in range(2):
        task = asyncio.create_task(door.enter(asyncio.Future(), returning=False))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert task.done()
        await asyncio.sleep(0.01)


async def test_many_are_let_in_a_few_at_a_time_and_all_of_them() -> None:
    """Others have turns of the event loop between them."""
    door, seen = Door(), list[int]()
    tasks = [asyncio.create_task(door.enter(asyncio.Future(), returning=False)) for _ in range(5 * AT_A_TIME)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        seen.append(sum(task.done() for task in tasks))
    steps = [after - before for before, after in zip([0, *seen], seen, strict=False)]
    assert max(steps) <= AT_A_TIME
    assert len(door) == 0


async def test_who_comes_back_is_let_in_before_who_comes_anew() -> None:
    """However long the others have waited."""
    door, order = Door(), list[str]()

    async def come(name: str, *, returning: bool) -> None:
        await door.enter(asyncio.Future(), returning=returning)
        order.append(name)

    new = [asyncio.create_task(come("new", returning=False)) for _ in range(3 * AT_A_TIME)]
    await asyncio.sleep(0)
    back = [asyncio.create_task(come("back", returning=True)) for _ in range(AT_A_TIME)]
    await asyncio.gather(*new, *back)
    assert order.index("back") <= AT_A_TIME
    assert set(order[-AT_A_TIME:]) == {"new"}


async def test_who_is_gone_takes_nobodys_place() -> None:
    """A connection that was lost while it waited waits no more, and nothing is kept of it."""
    door = Door()
    gone: list[asyncio.Future[None]] = [asyncio.Future() for _ in range(3 * AT_A_TIME)]
    tasks = [asyncio.create_task(door.enter(one, returning=False)) for one in gone]
    await asyncio.sleep(0)
    waiting = [(one, task) for one, task in zip(gone, tasks, strict=True) if not task.done()]
    before = len(door)
    for one, _ in waiting[-5:]:
        one.set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert all(task.done() for _, task in waiting[-5:])
    assert len(door) <= before - 5
    await asyncio.gather(*tasks)
    assert len(door) == 0


async def test_where_there_is_no_room_nobody_waits() -> None:
    """Whoever is too many is told at once, and the others are let in."""
    door = Door(room=AT_A_TIME)
    tasks = [asyncio.create_task(door.enter(asyncio.Future(), returning=False)) for _ in range(3 * AT_A_TIME)]
    assert (await asyncio.gather(*tasks)).count(False) == 2 * AT_A_TIME - 1  # the first was let in alone
