"""Feeds a provider's stream into a step: ``fed = await feed(step, stream)``.

The parts grow as the stream does. Where it breaks, everything that came stays, an error part
says what happened, and ``fed.error`` too; an exception of the provider's library is raised again after that.
A stop (the task is cancelled) closes the stream and writes nothing: the turn's end closes the parts.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary, WeakSet

from midstream.adapters.call import Call
from midstream.adapters.detect import reader_for
from midstream.adapters.failures import EMPTY, raised
from midstream.adapters.fed import Fed
from midstream.adapters.parts import Parts
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from midstream.agents import Step
    from midstream.agents.writer import Writer

CALLS: WeakKeyDictionary[Reader, dict[str, Call]] = WeakKeyDictionary()
"""The calls that a reader's streams left open: its next stream may go on with them."""
RUNS: WeakKeyDictionary[Writer, Reader] = WeakKeyDictionary()
"""The reader of a turn's run, where a run comes in several streams."""
READING: WeakSet[Reader] = WeakSet()
"""The readers that read a stream now."""


async def feed(step: Step, stream: object, *, reader: Reader | None = None) -> Fed:
    """Write everything that a stream says into the step, and return what it came to.

    ``stream`` is what the provider's asynchronous client returns for a streamed request (awaited or
    not, or a context manager that gives it), or any events: an asynchronous iterator, or a list. The
    reader is chosen by its first event; give ``reader`` where that cannot be known. A reader that is given
    again goes on: results of tools that an earlier stream called end those calls. The streams of a
    framework's run, which come one after another, are read so by themselves.

    Raises:
        TypeError: the stream is not asynchronous, or no reader is known for it.
        Exception: what the provider's library raised, after the error part is written.

    """
    fed = Fed()
    parts = Parts(step, fed)
    async with contextlib.AsyncExitStack() as stack:
        reader, failure = await _write(step, stream, stack, reader, parts)
        if failure is not None:
            await parts.write(raised(failure))
        elif reader is None and step.writer not in RUNS:
            await parts.write(EMPTY)
        elif reader is not None:
            for said in reader.end():
                await parts.write(said)
        await parts.end()
        if reader is not None:
            fed.unknown = reader.unknown
        if failure is not None:
            raise failure
        return fed


async def _write(
    step: Step, stream: object, stack: contextlib.AsyncExitStack, reader: Reader | None, parts: Parts
) -> tuple[Reader | None, Exception | None]:
    """Write all that the events say; return the reader that they needed, and what the library raised."""
    try:
        stream = await _obtained(stream, stack)
    except Exception as error:  # noqa: BLE001  # whatever the library raises is told, and raised again
        return reader, error
    events = _iterated(stream, stack)
    if reader is not None:
        _begin(reader, stream, stack, parts)
    while True:
        try:
            event = await anext(events)
        except StopAsyncIteration:
            return reader, None
        except Exception as error:  # noqa: BLE001  # likewise
            return reader, error
        if reader is None:
            reader = _chosen(step, event)
            _begin(reader, stream, stack, parts)
        for said in reader.read(event):
            await parts.write(said)


def _chosen(step: Step, event: object) -> Reader:
    """Return the reader that the event needs: that of the turn's run, unless it reads another stream now."""
    reader = reader_for(event)
    if not reader.spans_streams:
        return reader
    known = RUNS.setdefault(step.writer, reader)
    return known if type(known) is type(reader) and known not in READING else reader


def _begin(reader: Reader, stream: object, stack: contextlib.AsyncExitStack, parts: Parts) -> None:
    READING.add(reader)
    stack.callback(READING.discard, reader)
    parts.go_on(CALLS.setdefault(reader, {}))
    reader.begin(stream)


async def _obtained(stream: object, stack: contextlib.AsyncExitStack) -> object:
    """Return the stream that a request gives which was not awaited, or not entered, yet."""
    if inspect.isawaitable(stream):
        stream = await cast("Awaitable[object]", stream)
    if hasattr(stream, "__aenter__") and not hasattr(stream, "__aiter__"):
        manager = cast("contextlib.AbstractAsyncContextManager[object]", stream)
        stream = await stack.enter_async_context(manager)
    return stream


def _iterated(stream: object, stack: contextlib.AsyncExitStack) -> AsyncIterator[object]:
    """Return the events of a stream, which is closed when the stack is."""
    if isinstance(stream, (list, tuple)):
        return _each(cast("list[object]", stream))
    if not isinstance(stream, AsyncIterable):
        raise TypeError(
            f"feed() takes an asynchronous stream, or a list of events; this is {type(stream).__qualname__}. "
            "Use the provider's asynchronous client: a blocking one would hold up every session."
        )
    source = cast("AsyncIterable[object]", stream)
    stack.push_async_callback(_close, source)
    events = aiter(source)
    if events is not source:
        stack.push_async_callback(_close, events)
    return events


async def _each(events: list[object]) -> AsyncIterator[object]:
    for event in events:
        yield event


async def _close(stream: object) -> None:
    """Close the provider's stream, so that its connection is free and the model stops."""
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if callable(close):
        with contextlib.suppress(Exception):  # it is over; how it takes its leave changes nothing
            closing = cast("Callable[[], object]", close)()
            if inspect.isawaitable(closing):
                await closing
