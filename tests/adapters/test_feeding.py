"""Whatever stream is fed: what comes of it, how it ends, how it breaks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.adapters import Fed, Reader, feed
from midstream.adapters.events import (
    ApprovalRequested,
    Data,
    Event,
    File,
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    Refusal,
    StepBoundary,
    StreamError,
    TextDelta,
    TextEnded,
    TextStarted,
    ToolFailed,
    ToolInputDelta,
    ToolInputReady,
    ToolOutput,
    ToolRunning,
    ToolStarted,
    UrlSource,
)
from midstream.adapters.kept import KeptParts
from midstream.adapters.openai_responses import OpenAIResponsesReader
from midstream.adapters.plain import Plain
from midstream.agents import Turn, TurnFailed
from midstream.protocol.model import TurnFailure
from tests.adapters.memory import fed_in_memory, plain_parts, words_of
from tests.adapters.openai_events import call_piece, chunk
from tests.server.sessions.agent_turn import answer, begin
from tests.server.sessions.house import Street, in_simulation, parts_of


class Echo(Reader):
    """Says what it is given: the events of the stream are the neutral ones."""

    provider = "echo"

    def read(self, event: object) -> list[Event]:
        """Return the event."""
        assert isinstance(event, Event)
        return [event]

    def events(self, event: Plain) -> list[Event]:
        """Never asked."""
        raise NotImplementedError(event)


async def echoed(*events: Event) -> tuple[Fed, list[dict[str, object]]]:
    """Feed neutral events."""
    return await fed_in_memory(list(events), Echo())


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


async def test_blocks_that_grow_in_turns_are_parts_of_their_own() -> None:
    """Two texts that close in the same tick each have their own text."""
    stream = [TextDelta(block, word) for word in "ab" for block in ("1", "2")]
    _, parts = await echoed(*stream, ReasoningDelta("3", "r"), TextEnded("1"), TextEnded("2"))
    assert [(part["type"], part["text"], part["state"]) for part in parts] == [
        ("text", "ab", "done"),
        ("text", "ab", "done"),
        ("reasoning", "r", "done"),
    ]


async def test_a_block_that_is_named_again_is_another_part() -> None:
    """After its end; what is open goes on."""
    _, parts = await echoed(TextDelta("1", "a"), TextStarted("1"), TextEnded("1"), TextDelta("1", "b"))
    assert words_of(parts) == ["a", "b"]


async def test_metadata_of_the_end_joins_that_of_the_beginning() -> None:
    """Of texts and of calls; the end has the last word."""
    _, parts = await echoed(
        TextStarted("1", {"p": {"id": 1, "x": 1}}),
        TextEnded("1", {"p": {"x": 2}, "q": {}}),
        ReasoningEnded("2", {"p": {"sealed": "s"}}),
        ToolStarted("3", "c", "f", metadata={"p": {"id": 3}}),
        ToolInputReady("3", metadata={"p": {"signature": "s"}}),
        ToolStarted("4", "d", "f", metadata={"p": {"id": 4}}),
        ToolInputReady("4"),
    )
    names = ("provider_metadata", "call_provider_metadata")
    assert [part[name] for part in parts for name in names if name in part] == [
        {"p": {"id": 1, "x": 2}, "q": {}},
        {"p": {"sealed": "s"}},
        {"p": {"id": 3, "signature": "s"}},
        {"p": {"id": 4}},
    ]


WORDS = "né\u200d\U0001f600\U0001f3fd!"


@pytest.mark.parametrize("cut", range(len(WORDS.encode("utf-16-le")) // 2 + 1))
@pytest.mark.parametrize("kind", ["text", "reasoning", "arguments"])
async def test_a_code_point_may_be_cut_in_two_anywhere(kind: str, cut: int) -> None:
    """The text is the same: halves are joined with the next delta of their block."""
    units = WORDS.encode("utf-16-le")
    left, right = (half.decode("utf-16-le", "surrogatepass") for half in (units[: 2 * cut], units[2 * cut :]))
    if kind == "arguments":
        start: list[Event] = [
            ToolStarted("1", "c", "f"),
            ToolInputDelta("1", f'"{left}'),
            TextDelta("2", "x"),
        ]
        _, parts = await echoed(*start, ToolInputDelta("1", f'{right}"'), ToolInputReady("1"))
        assert (parts[0]["input"], parts[0]["input_text"]) == (WORDS, f'"{WORDS}"')
        return
    delta = TextDelta if kind == "text" else ReasoningDelta
    _, parts = await echoed(delta("1", left), delta("2", "x"), delta("1", right), delta("1", ""))
    assert words_of(parts, kind) == [WORDS, "x"]


@given(st.lists(st.text(st.characters(), max_size=4)))
async def test_any_pieces_are_written_as_the_unicode_that_they_make(pieces: list[str]) -> None:
    """A half that nothing completes becomes U+FFFD, and is never fatal."""
    _, parts = await echoed(TextStarted("1"), *(TextDelta("1", piece) for piece in pieces))
    expected = "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert words_of(parts) == [expected]


async def test_a_call_moves_only_as_the_protocol_allows() -> None:
    """What comes too late, twice or for no call does no harm."""
    _, parts = await echoed(
        ToolOutput("0", "lost"),
        ToolInputDelta("0", "lost"),
        ToolStarted("1", "c", "f"),
        ToolStarted("1", "c", "f"),
        ToolInputDelta("1", "1"),
        ToolRunning("1"),
        ToolInputDelta("1", "late"),
        ToolInputReady("1", input="late"),
        ToolOutput("1", 1, preliminary=True),
        ToolOutput("1", 2, preliminary=True),
        ToolOutput("1", 3),
        ToolOutput("1", 4),
        ToolFailed("1", "late"),
        ToolStarted("2", "d", "f", input={}),
        ToolFailed("2", "no"),
        ToolOutput("2", 1),
        ToolStarted("3", "e", "f"),
        ToolFailed("3", "no"),
    )
    first, second, third = parts
    assert (first["state"], first["input"], first["input_text"], first["output"]) == ("completed", 1, "1", 3)
    assert (second["state"], second["error"]) == ("failed", "no")
    assert (third["state"], third["error"]) == ("failed", "no")


async def test_the_agent_learns_what_it_must_run() -> None:
    """Not what the provider runs, what has an outcome, or what waits for a person."""
    fed, _ = await echoed(
        ToolStarted("1", "mine", "f", input={}),
        ToolStarted("2", "its", "f", input={}, provider_executed=True),
        ToolStarted("3", "done", "f", input={}),
        ToolOutput("3", 1),
        ToolStarted("4", "asked", "f", input={}, provider_executed=True),
        ApprovalRequested("4", "a4"),
        ToolStarted("5", "broken", "f"),
        ToolInputReady("5", raw_input="{"),
        ToolStarted("6", "runs", "f", input={}),
        ToolRunning("6"),
    )
    assert [call.tool_call_id for call in fed.calls] == ["mine"]
    assert [(call.tool_call_id, approval_id) for call, approval_id in fed.approvals] == [("asked", "a4")]
    assert [call.tool_call_id for call in fed.invalid_calls] == ["broken"]
    assert fed.wants_results


async def test_what_a_provider_sends_that_the_protocol_cannot_carry_is_made_fit() -> None:
    """Lone surrogates, endless numbers, names that are empty."""
    lone = "a\ud83d"
    _, parts = await echoed(
        ToolStarted("1", lone, "", input={lone: float("nan")}),
        ToolOutput("1", 2**64),
        UrlSource(f"https://x.example/{lone}", title=lone, source_id=""),
        Data("d", {"v": [float("inf")]}),
    )
    tool, source, data = parts
    assert (tool["tool_call_id"], tool["tool_name"]) == ("a\ufffd", "unnamed")
    assert (tool["input"], tool["output"]) == ({"a\ufffd": "nan"}, "0x10000000000000000")
    assert (source["url"], source["title"]) == ("https://x.example/a\ufffd", "a\ufffd")
    assert data["data"] == {"v": ["inf"]}


async def test_usage_is_written_once_for_each_model_call() -> None:
    """The last that was said before a boundary or the end."""
    fed, parts = await echoed(
        Data("usage", {"n": 1}),
        Data("usage", {"n": 2}),
        StepBoundary(),
        Data("usage", {"n": 3}),
        TextDelta("1", "a"),
    )
    assert [part.get("data", part["type"]) for part in parts] == [{"n": 2}, "step-start", "text", {"n": 3}]
    assert fed.usage == {"n": 3}


async def test_the_outcome_says_why_the_model_stopped() -> None:
    """The last word counts; a refusal is its words joined."""
    fed, parts = await echoed(
        Refusal("n"), Refusal("o"), Finished("stop", "end"), Finished("length", "max"), File("data:,x", "a/b")
    )
    assert (fed.reason, fed.raw_reason, fed.refusal) == ("length", "max", "no")
    assert [part["type"] for part in parts] == ["file"]
    fed.raise_for_error()


async def test_an_error_ends_what_is_open_and_is_written_once() -> None:
    """All text so far stays, a call inside its arguments fails, and a second error adds nothing."""
    error = StreamError("code", "words", recoverable=True)
    fed, parts = await echoed(
        TextDelta("1", "so far"),
        ToolStarted("2", "c", "f"),
        ToolInputDelta("2", "{"),
        error,
        StreamError("x", "y"),
    )
    assert [(part["type"], part.get("state")) for part in parts] == [
        ("text", "done"),
        ("tool", "failed"),
        ("error", None),
    ]
    assert (parts[2]["code"], parts[2]["message"], parts[2]["recoverable"]) == ("code", "words", True)
    assert (fed.error, fed.reason) == (error, "error")
    with pytest.raises(TurnFailed) as failed:
        fed.raise_for_error()
    assert (failed.value.failure.code, failed.value.failure.message) == ("code", "words")
    assert failed.value.recoverable


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
    assert (parts[0]["code"], fed.unknown) == ("stream_cut", {"ping": 1})


async def test_a_stream_without_events_is_told_as_cut() -> None:
    """There is nothing to choose a reader by."""
    fed, parts = await fed_in_memory([])
    assert [part["code"] for part in parts] == ["stream_cut"]
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
