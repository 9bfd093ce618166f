"""The neutral events: what each becomes, in any order and however its text is cut."""

from __future__ import annotations

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
from midstream.adapters.plain import Plain
from midstream.agents import TurnFailed
from tests.adapters.memory import fed_in_memory, plain_parts, words_of


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


HALVES = st.sampled_from("\ud83d\ude00\ud800\udfff")


@given(st.lists(st.text(st.characters() | HALVES, max_size=4)))
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
    """All text so far stays, a second error adds nothing; a call in its arguments may still be abandoned."""
    error = StreamError("code", "words", recoverable=True)
    fed, parts = await echoed(
        TextDelta("1", "so far"),
        ToolStarted("2", "c", "f"),
        ToolInputDelta("2", "{"),
        error,
        Data("usage", {"n": 1}),
        StreamError("x", "y"),
    )
    assert [(part["type"], part.get("state")) for part in parts] == [
        ("text", "done"),
        ("tool", "input-streaming"),
        ("data", None),
        ("error", None),
    ]
    assert (parts[3]["code"], parts[3]["message"], parts[3]["recoverable"]) == ("code", "words", True)
    assert (fed.error, fed.reason) == (error, "error")
    with pytest.raises(TurnFailed) as failed:
        fed.raise_for_error()
    assert (failed.value.failure.code, failed.value.failure.message) == ("code", "words")
    assert failed.value.recoverable


async def test_a_reader_that_goes_on_tells_only_what_is_still_to_be_run() -> None:
    """What the agent ran between two streams is done, and an output that comes for it does no harm."""
    kept, reader = KeptParts(), Echo()
    step = kept.step()
    calls = [ToolStarted(name, name, "f", input={}) for name in "ab"]
    first = await feed(step, calls, reader=reader)
    await first.calls[0].complete("mine")
    second = await feed(step, [ToolOutput("a", "late"), ToolFailed("a", "late")], reader=reader)
    assert [call.tool_call_id for call in second.calls] == ["b"]
    third = await feed(step, [ToolOutput("b", "its")], reader=reader)
    assert third.calls == []
    assert [part["output"] for part in plain_parts(kept)] == ["mine", "its"]
