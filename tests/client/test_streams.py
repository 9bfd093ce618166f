"""A reader gets everything in order or is told that it did not."""

import asyncio
import gc

import pytest

from midstream.client.streams import Fanout, Stream


async def test_a_reader_gets_what_is_published_after_it_began_in_order() -> None:
    """Two readers that begin at different times each get their part."""
    fanout: Fanout[int] = Fanout(10)
    first = fanout.reader()
    fanout.publish(1)
    second = fanout.reader()
    fanout.publish(2)
    fanout.end()
    assert [item async for item in first] == [1, 2]
    assert [item async for item in second] == [2]


async def test_a_waiting_reader_is_woken() -> None:
    """A reader that came first gets the item that comes later."""
    fanout: Fanout[int] = Fanout(10)
    stream = fanout.reader()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    fanout.publish(7)
    assert await waiting == 7


async def test_a_slow_reader_gets_one_marker_for_all_that_it_missed() -> None:
    """Nothing is lost silently: the marker stands where the gap is, and the rest follows it."""
    stream: Stream[str] = Stream(3, overflow=lambda: "missed")
    for item in ("a", "b", "c", "d", "e"):
        stream.push(item)
    stream.end()
    assert [item async for item in stream] == ["missed", "e"]


async def test_without_a_marker_the_newest_are_kept() -> None:
    """A reader of states that is slow sees the latest ones."""
    stream: Stream[int] = Stream(2)
    for item in range(5):
        stream.push(item)
    stream.end()
    assert [item async for item in stream] == [3, 4]


async def test_an_error_comes_after_what_waited() -> None:
    """The reader first gets what was published, then learns why there is no more."""
    fanout: Fanout[int] = Fanout(10)
    stream = fanout.reader()
    fanout.publish(1)
    fanout.end(ValueError("gone"))
    assert await anext(stream) == 1
    with pytest.raises(ValueError, match="gone"):
        await anext(stream)
    with pytest.raises(ValueError, match="gone"):
        await anext(fanout.reader())


async def test_two_tasks_cannot_read_one_stream() -> None:
    """Which of them got what would be chance, so it is an error."""
    stream: Stream[int] = Stream(10)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one stream for each reader"):
        await anext(stream)
    stream.push(1)
    assert await waiting == 1


async def test_a_reader_that_went_away_keeps_nothing() -> None:
    """A dropped stream is forgotten, and with the last one nobody reads."""
    fanout: Fanout[int] = Fanout(10)
    stream = fanout.reader()
    assert fanout
    del stream
    gc.collect()
    assert not fanout


async def test_a_closed_stream_ends() -> None:
    """After the block nothing more comes, not even what waited."""
    fanout: Fanout[int] = Fanout(10)
    async with fanout.reader() as stream:
        fanout.publish(1)
    fanout.publish(2)
    assert [item async for item in stream] == []
