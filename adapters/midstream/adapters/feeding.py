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
from weakref import WeakKeyDictionary

from midstream.adapters.call import Call
from midstream.adapters.detect import reader_for
from midstream.adapters.events import StreamError
from midstream.adapters.fed import Fed
from midstream.adapters.parts import Parts
from midstream.adapters.plain import mapping, text
from midstream.adapters.reader import Reader

if TYPE_CHECKING:
    from midstream.agents import Step

CALLS: WeakKeyDictionary[Reader, dict[str, Call]] = WeakKeyDictionary()
"""The calls that a reader's streams left open: its next stream may go on with them."""
EMPTY = StreamError("stream_cut", "The model's stream ended before its first event.", recoverable=True)


async def feed(step: Step, stream: object, *, reader: Reader | None = None) -> Fed:
    """Write everything that a stream says into the step, and return what it came to.

    ``stream`` is what the provider's asynchronous client returns for a streamed request (awaited or
    not, or a context manager that gives it), or any events: an asynchronous iterator, or a list. The
    reader is chosen by its type or its first event; give ``reader`` where that cannot be known. A reader
    that is given again goes on: results of tools that an earlier stream called end those calls.

    Raises:
        TypeError: the stream is not asynchronous, or no reader is known for it.
        Exception: what the provider's library raised in mid-stream, after the error part is written.

    """
    async with contextlib.AsyncExitStack() as stack:
        stream, events = await _opened(stream, stack)
        fed = Fed()
        parts = Parts(step, fed, CALLS.setdefault(reader, {}) if reader is not None else None)
        reader, failure = await _write(stream, events, reader, parts)
        if failure is not None:
            await parts.write(_broken(failure))
        elif reader is None:
            await parts.write(EMPTY)
        else:
            for said in reader.end():
                await parts.write(said)
        await parts.end()
        if reader is not None:
            fed.unknown = reader.unknown
        if failure is not None:
            raise failure
        return fed


async def _write(
    stream: object, events: AsyncIterator[object], reader: Reader | None, parts: Parts
) -> tuple[Reader | None, Exception | None]:
    """Write all that the events say; return the reader that they needed, and what the library raised."""
    if reader is not None:
        reader.begin(stream)
    while True:
        try:
            event = await anext(events)
        except StopAsyncIteration:
            return reader, None
        except Exception as error:  # noqa: BLE001  # whatever the library raises is told, and raised again
            return reader, error
        if reader is None:
            reader = reader_for(event)
            reader.begin(stream)
        for said in reader.read(event):
            await parts.write(said)


async def _opened(stream: object, stack: contextlib.AsyncExitStack) -> tuple[object, AsyncIterator[object]]:
    """Return the open stream and its events, of whatever was given, and close it when the stack does."""
    if inspect.isawaitable(stream):
        stream = await cast("Awaitable[object]", stream)
    if hasattr(stream, "__aenter__") and not hasattr(stream, "__aiter__"):
        manager = cast("contextlib.AbstractAsyncContextManager[object]", stream)
        stream = await stack.enter_async_context(manager)
    if isinstance(stream, (list, tuple)):
        return cast("object", stream), _each(cast("list[object]", stream))
    if not isinstance(stream, AsyncIterable):
        raise TypeError(
            f"feed() takes an asynchronous stream, or a list of events; this is {type(stream).__qualname__}. "
            "Use the provider's asynchronous client: a blocking one would hold up every session."
        )
    events = cast("AsyncIterable[object]", stream)
    stack.push_async_callback(_close, events)
    return events, aiter(events)


async def _each(events: list[object]) -> AsyncIterator[object]:
    for event in events:
        yield event


async def _close(stream: object) -> None:
    """Close the provider's stream, so that its connection is free and the model stops."""
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if callable(close):
        closing = cast("Callable[[], object]", close)()
        if inspect.isawaitable(closing):
            with contextlib.suppress(Exception):  # it is over; how it takes its leave changes nothing
                await closing


def _broken(error: Exception) -> StreamError:
    """Return what people are told: the provider's words where it gave some, else the kind of the error alone.

    The text of an arbitrary exception may hold addresses and keys, and goes to everybody in the session.
    """
    body: object = getattr(error, "body", None)
    inner = mapping(body, "error") or mapping(body)
    code = text(inner, "code") or text(inner, "type") or "stream_failed"
    message = text(inner, "message") or f"The model's stream broke off with {type(error).__name__}."
    return StreamError(code, message, recoverable=True)
