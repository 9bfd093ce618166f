"""What a client publishes to its readers: each has a bounded buffer of its own, and none delays another."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Stream(Generic[T]):
    """What one reader reads with ``async for``; everything since it was made, in order.

    At most ``limit`` items wait. What happens to a reader that is slower is said by ``overflow``: it
    makes the one item that then stands for all that waited; without it the oldest item is dropped.
    A stream that nobody holds is forgotten. One task reads it at a time.
    """

    def __init__(self, limit: int, overflow: Callable[[], T] | None = None) -> None:
        """Begin empty and open."""
        self._items: deque[T] = deque()
        self._limit = limit
        self._overflow = overflow
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: BaseException | None = None

    def push(self, item: T) -> None:
        """Give the reader an item."""
        if self._ended:
            return
        if len(self._items) >= self._limit:
            if self._overflow is None:
                self._items.popleft()
            else:
                self._items.clear()
                item = self._overflow()
        self._items.append(item)
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """End the stream: after what waits the reader gets the error, or the loop just ends."""
        if not self._ended:
            self._ended = True
            self._error = error
            self._wake()

    async def aclose(self) -> None:
        """Stop reading: what waits is dropped and nothing more is kept."""
        self._items.clear()
        self.end()

    def __aiter__(self) -> Stream[T]:
        """Return itself."""
        return self

    async def __anext__(self) -> T:
        """Return the next item, when there is one."""
        while not self._items:
            if self._ended:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            if self._waiter is not None:
                raise RuntimeError("Another task reads this stream already. Make one stream for each reader.")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._items.popleft()

    async def __aenter__(self) -> Stream[T]:
        """Return itself, to be closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading."""
        await self.aclose()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Fanout(Generic[T]):
    """Gives each item to all readers that there are."""

    def __init__(self, limit: int) -> None:
        """Begin without readers; ``limit`` is how many items wait for each unless it says otherwise."""
        self._limit = limit
        self._made = 0
        # by number, so that the order of readers is that of their making
        self._readers: weakref.WeakValueDictionary[int, Stream[T]] = weakref.WeakValueDictionary()
        self._ended = False
        self._error: BaseException | None = None

    def __bool__(self) -> bool:
        """Say whether anybody reads."""
        return bool(self._readers)

    def reader(self, *, limit: int | None = None, overflow: Callable[[], T] | None = None) -> Stream[T]:
        """Return a new stream, which begins now."""
        stream: Stream[T] = Stream(limit or self._limit, overflow)
        if self._ended:
            stream.end(self._error)
        else:
            self._readers[self._made] = stream
            self._made += 1
        return stream

    def publish(self, item: T) -> None:
        """Give an item to all readers."""
        for stream in list(self._readers.values()):
            stream.push(item)

    def end(self, error: BaseException | None = None) -> None:
        """End all streams, and those that are asked for later."""
        self._ended = True
        self._error = error
        for stream in list(self._readers.values()):
            stream.end(error)
