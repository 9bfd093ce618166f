"""Whatever stream is fed: what comes of it, how it ends, how it breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import NoReturn

import pytest

from midstream.adapters import feed
from midstream.adapters.kept import KeptParts
from midstream.adapters.openai_responses import OpenAIResponsesReader
from midstream.agents import Turn, TurnFailed
from midstream.protocol.model import TurnFailure
from tests.adapters.memory import fed_in_memory, plain_parts, words_of
from tests.adapters.openai_events import call_piece, chunk
from tests.server.sessions.agent_turn import answer, begin
from tests.server.sessions.house import Street, in_simulation, parts_of


class Source:
    """A stream as a library's own: asynchronous, to be closed, and it may break."""

    def __init__(self, *events: object, error: BaseException | None = None) -> None:
        self._events = list(events)
        self._error = error
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[object]:
        """Begin."""
        return self

    async def __anext__(self) -> object:
        """Give the next event, break, or end."""
        if self._events:
            return self._events.pop(0)
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def close(self) -> None:
        """Close it."""
        self.closed += 1


class Refused(Exception):
    """As the libraries' errors are, with the provider's body."""

    def __init__(self, body: object) -> None:
        super().__init__("POST https://secret.example/?key=hunter2")
        self.body = body


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (Refused({"error": {"code": "busy", "message": "Later."}}), "busy", "Later."),
        (Refused({"type": "overloaded_error", "message": "Later."}), "overloaded_error", "Later."),
        (Refused("hunter2"), "stream_failed", "The model's stream broke off with Refused."),
        (OSError("hunter2"), "stream_failed", "The model's stream broke off with OSError."),
    ],
)
async def test_an_exception_of_the_library_is_told_and_raised_again(
    error: Exception, code: str, message: str
) -> None:
    """After the parts are closed; of its own text only what the provider said goes to people."""
    source, kept = Source(chunk(content="so far"), error=error), KeptParts()
    with pytest.raises(type(error)) as raised:
        await feed(kept.step(), source)
    assert raised.value is error
    text, told = plain_parts(kept)
    assert (text["text"], text["state"]) == ("so far", "done")
    assert (told["type"], told["code"], told["message"]) == ("error", code, message)
    assert source.closed == 1


SAID = [chunk(content="a"), chunk("stop")]


async def generated() -> AsyncIterator[object]:
    """Give the events, as an asynchronous generator."""
    for event in SAID:
        yield event


async def awaited() -> Source:
    """Give the stream when it is awaited, as `create(stream=True)` does."""
    return Source(*SAID)


@contextlib.asynccontextmanager
async def entered() -> AsyncGenerator[Source]:
    """Give the stream when it is entered, as `stream(...)` does."""
    yield Source(*SAID)


@pytest.mark.parametrize(
    "stream",
    [
        lambda: SAID,
        lambda: tuple(SAID),
        lambda: [json.dumps(event) for event in SAID],
        generated,
        awaited,
        entered,
        lambda: Source(*SAID),
    ],
    ids=["list", "tuple", "lines", "generator", "awaitable", "manager", "stream"],
)
async def test_a_stream_may_come_in_any_form(stream: Callable[[], object]) -> None:
    """As the libraries give it, and as it was recorded."""
    fed, parts = await fed_in_memory(stream())
    assert (words_of(parts), fed.reason) == (["a"], "stop")


async def test_a_stream_is_closed_when_it_is_over() -> None:
    """Its connection is free again."""
    source = Source(*SAID)
    await fed_in_memory(source)
    assert source.closed == 1


async def test_a_stream_that_cannot_be_closed_was_fed_all_the_same() -> None:
    """Whether its library closes by a plain function or not."""

    class Stuck(Source):
        def close(self) -> NoReturn:  # not async, as some libraries have it
            raise OSError

    fed, parts = await fed_in_memory(Stuck(*SAID))
    assert (words_of(parts), fed.reason) == (["a"], "stop")


@pytest.mark.parametrize("stream", [iter(SAID), None, "text", object()])
async def test_what_is_no_asynchronous_stream_is_refused(stream: object) -> None:
    """A blocking one would hold up every session; the text says what to give."""
    with pytest.raises(TypeError, match="asynchronous stream, or a list"):
        await fed_in_memory(stream)


async def test_a_stream_of_no_known_format_is_refused_and_closed() -> None:
    """The text names what there is, and how to give a reader."""
    source = Source({"poem": 1})
    with pytest.raises(TypeError, match=r"No reader .* reader=.* openai-chat"):
        await fed_in_memory(source)
    assert source.closed == 1


async def test_the_reader_that_is_given_wins() -> None:
    """Also over events that another would know."""
    fed, parts = await fed_in_memory([{**chunk(content="a"), "type": "ping"}], OpenAIResponsesReader())
    assert (parts[0]["code"], fed.unknown) == ("stream_ended_early", {"ping": 1})


async def test_a_stream_without_events_is_told_as_cut() -> None:
    """There is nothing to choose a reader by."""
    fed, parts = await fed_in_memory([])
    assert [part["code"] for part in parts] == ["stream_ended_early"]
    assert (fed.reason, fed.unknown) == ("error", {})


@in_simulation
async def test_a_fed_step_is_what_everybody_sees_and_what_is_stored(street: Street) -> None:
    """Live, in pages, in digests and in the store."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            fed = await step.feed(
                [
                    chunk(reasoning="hm"),
                    chunk(content="So"),
                    call_piece("{}", id="c1", name="f"),
                    chunk("tool_calls"),
                ]
            )
        for call in fed.calls:
            await call.run()
            await call.complete({"ok": True})
        assert [(part["type"], part["state"]) for part in await answer(house, recorder)] == [
            ("reasoning", "done"),
            ("text", "done"),
            ("tool", "completed"),
        ]


@in_simulation
async def test_a_turn_that_fails_with_the_streams_error_tells_it_once(street: Street) -> None:
    """The k tokens are there, and one error, though both the stream and the turn say it."""
    async with street.house() as house:
        _, turn = await begin(house)
        async with turn.step() as step:
            fed = await step.feed([chunk(content="so far"), {"error": {"code": "busy", "message": "Later."}}])
        with pytest.raises(TurnFailed) as failed:
            fed.raise_for_error()
        ended = await house.complete(turn, failed.value)
        assert ended.error == TurnFailure(code="busy", message="Later.")
        parts = parts_of((await house.messages())[1])
        assert [(part["type"], part.get("text", part.get("code"))) for part in parts] == [
            ("text", "so far"),
            ("error", "busy"),
        ]


@in_simulation
async def test_a_stop_closes_the_stream_and_fails_the_call_in_its_arguments(street: Street) -> None:
    """At once: the model task is cancelled where it waits, and nothing enters after that."""
    waits, source = asyncio.Event(), Endless(chunk(content="so far"), call_piece('{"a', id="c1", name="f"))

    async def agent(turn: Turn) -> None:
        source.waits = waits
        async with turn.step() as step:
            await step.feed(source)

    async with street.house(agent) as house:
        await house.create()
        await house.prompt()
        await waits.wait()
        await house.stop()
        await source.over.wait()
        parts = parts_of((await house.messages())[1])
        assert [(part["type"], part.get("state"), part.get("error")) for part in parts] == [
            ("text", "done", None),
            ("tool", "failed", "turn_stopped"),
        ]
        assert source.closed == 1


class Endless(Source):
    """A stream whose last event is waited for in vain."""

    waits: asyncio.Event

    def __init__(self, *events: object) -> None:
        super().__init__(*events)
        self.over = asyncio.Event()

    async def __anext__(self) -> object:
        """Give the events, then wait."""
        if self._events:
            return self._events.pop(0)
        self.waits.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def close(self) -> None:
        """Close it, and say so."""
        await super().close()
        self.over.set()


@in_simulation
async def test_a_step_that_broke_can_be_abandoned_and_tried_again(street: Street) -> None:
    """Its text, its error and the call inside its arguments are gone; what comes then stands alone."""
    broken = [chunk(content="so"), call_piece('{"a', id="c1", name="f"), {"error": {"code": "busy"}}]
    async with street.house() as house:
        recorder, turn = await begin(house)
        for stream in ([broken[-1]], broken, SAID):
            async with turn.step() as step:
                fed = await step.feed(stream)
                if fed.error:
                    assert await step.abandon()
        assert [(part["type"], part["text"]) for part in await answer(house, recorder)] == [("text", "a")]


@in_simulation
async def test_an_error_that_nobody_takes_back_stays_with_what_came(street: Street) -> None:
    """The agent goes on; a call inside its arguments ends with the turn."""
    stream = [chunk(content="so"), call_piece('{"a', id="c1", name="f"), {"error": {"code": "busy"}}]
    async with street.house() as house:
        _, turn = await begin(house)
        async with turn.step() as step:
            await step.feed(stream)
        async with turn.step() as step:
            await step.feed(SAID)
        await house.complete(turn)
        parts = parts_of((await house.messages())[1])
        assert [(part["type"], part.get("state")) for part in parts] == [
            ("text", "done"),
            ("tool", "failed"),
            ("error", None),
            ("text", "done"),
        ]
