"""The Responses API: texts, reasonings, sources and ends."""

from __future__ import annotations

from typing import Any

import pytest

from midstream.adapters.events import StreamError
from midstream.adapters.openai_responses import OpenAIResponsesReader
from tests.adapters.memory import fed_in_memory, said, words_of
from tests.adapters.openai_events import Plain, added, done, event, response, said_text

MESSAGE: Plain = {"type": "message", "id": "msg_0", "role": "assistant", "content": []}


def text_part(text: str, **fields: object) -> Plain:
    """One content of a message."""
    return {"type": "output_text", "text": text, "annotations": [], **fields}


def whole_text(text: str, index: int = 0, content: int = 0, **fields: object) -> list[Plain]:
    """All events of a text that streams character by character."""
    place: Any = {"item_id": f"msg_{index}", "content_index": content}
    return [
        event("content_part.added", index, **place, part=text_part("")),
        *(said_text(character, index, content) for character in text),
        event("output_text.done", index, **place, text=text),
        event("content_part.done", index, **place, part=text_part(text, **fields)),
    ]


async def test_the_text_is_the_concatenation_of_its_deltas() -> None:
    """Each text once, however often the events repeat it."""
    item = {**MESSAGE, "content": [text_part("Hé!")]}
    fed, parts = await fed_in_memory(response(added(MESSAGE), *whole_text("Hé!"), done(item)))
    assert parts == [
        {
            "type": "text",
            "text": "Hé!",
            "state": "done",
            "provider_metadata": {"openai": {"item_id": "msg_0"}},
        }
    ]
    assert (fed.reason, fed.raw_reason, fed.error, fed.unknown) == ("stop", "completed", None, {})


async def test_texts_that_did_not_stream_are_taken_whole() -> None:
    """From the end of the text, of its item or of the response, whichever comes first."""
    item = {**MESSAGE, "content": [text_part("a")]}
    end = event("content_part.done", content_index=0, part=text_part("a"))
    for stream in (
        response(added(MESSAGE), end, done(item)),
        response(added(MESSAGE), done(item)),
        response(done(item)),
        [{"type": "response.completed", "response": {"output": [item]}}],
    ):
        _, parts = await fed_in_memory(stream)
        assert words_of(parts) == ["a"]


async def test_two_texts_that_grow_in_turns_each_have_their_own() -> None:
    """Also where both close in the same tick."""
    first, second = whole_text("ab", content=0), whole_text("xy", content=1)
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    _, parts = await fed_in_memory(response(added(MESSAGE), *mixed, done(MESSAGE)))
    assert words_of(parts) == ["ab", "xy"]


async def test_phases_are_kept_for_the_next_request() -> None:
    """The model wants to have them back on every message."""
    messages = [{**MESSAGE, "phase": phase} for phase in ("commentary", "final_answer")]
    stream = [
        event
        for index, message in enumerate(messages)
        for event in (added(message, index), *whole_text("a", index), done(message, index))
    ]
    _, parts = await fed_in_memory(response(*stream))
    assert [part["provider_metadata"] for part in parts] == [
        {"openai": {"item_id": "msg_0", "phase": "commentary"}},
        {"openai": {"item_id": "msg_1", "phase": "final_answer"}},
    ]


async def test_a_refusal_is_a_text_that_says_so() -> None:
    """Its item is kept, and the agent learns of it."""
    place: Any = {"content_index": 0, "item_id": "msg_0"}
    stream = [
        added(MESSAGE),
        event("content_part.added", **place, part={"type": "refusal", "refusal": ""}),
        event("refusal.delta", **place, delta="I can"),
        event("refusal.delta", **place, delta="not."),
        event("refusal.done", **place, refusal="I cannot."),
        event("content_part.done", **place, part={"type": "refusal", "refusal": "I cannot."}),
        done({**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot."}]}),
    ]
    fed, parts = await fed_in_memory(response(*stream))
    assert words_of(parts) == ["I cannot."]
    assert parts[0]["provider_metadata"] == {"openai": {"item_id": "msg_0", "refusal": True}}
    assert fed.refusal == "I cannot."
    assert fed.unknown == {}


def summary(number: int, *words: str) -> list[Plain]:
    """All events of one summary of a reasoning."""
    place: Any = {"item_id": "rs_0", "summary_index": number}
    part = {"type": "summary_text", "text": "".join(words)}
    return [
        event("reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""}),
        *(event("reasoning_summary_text.delta", **place, delta=word) for word in words),
        event("reasoning_summary_text.done", **place, text="".join(words)),
        event("reasoning_summary_part.done", **place, part=part),
    ]


async def test_each_summary_is_a_reasoning_and_the_last_keeps_what_is_encrypted() -> None:
    """The end of reasoning and the start of text are both there, in order."""
    item: Plain = {"type": "reasoning", "id": "rs_0", "summary": []}
    ended = {**item, "encrypted_content": "secret", "summary": [{"text": "ab"}, {"text": "c"}]}
    stream = [
        added(item),
        *summary(0, "a", "b"),
        *summary(1, "c"),
        done(ended),
        added(MESSAGE, 1),
        *whole_text("So", 1),
    ]
    _, parts = await fed_in_memory(response(*stream))
    assert [(part["type"], part["text"]) for part in parts] == [
        ("reasoning", "ab"),
        ("reasoning", "c"),
        ("text", "So"),
    ]
    assert [part["provider_metadata"] for part in parts[:2]] == [
        {"openai": {"item_id": "rs_0"}},
        {"openai": {"item_id": "rs_0", "encrypted_content": "secret"}},
    ]


async def test_a_reasoning_without_words_is_kept_for_the_next_request() -> None:
    """Most are like that: only the provider can read them."""
    item: Plain = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "secret"}
    _, parts = await fed_in_memory(response(added(item), done(item)))
    metadata = {"openai": {"item_id": "rs_0", "encrypted_content": "secret"}}
    assert parts == [{"type": "reasoning", "text": "", "state": "done", "provider_metadata": metadata}]


async def test_a_reasoning_that_did_not_stream_is_taken_from_its_item() -> None:
    """Summaries and the open models' own words alike."""
    item: Plain = {"type": "reasoning", "id": "rs_0", "summary": [{"text": "a"}], "content": [{"text": "b"}]}
    _, parts = await fed_in_memory(response(done(item)))
    assert words_of(parts, "reasoning") == ["a", "b"]


async def test_a_compacted_history_is_kept_for_the_next_request() -> None:
    """It is no words for people, and stands where reasoning would."""
    item: Plain = {"type": "compaction", "id": "cmp_0", "encrypted_content": "secret"}
    _, parts = await fed_in_memory(response(added(item), done(item)))
    metadata = {"openai": {"item_id": "cmp_0", "type": "compaction", "encrypted_content": "secret"}}
    assert [part["provider_metadata"] for part in parts] == [metadata]


async def test_what_a_text_rests_on_is_a_source_once() -> None:
    """Pages and files, however often they are cited; every citation stays with its text."""
    page = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0}
    file = {"type": "file_citation", "file_id": "f1", "filename": "a.pdf", "index": 3}
    made = {"type": "container_file_citation", "file_id": "f2", "filename": "b.csv", "container_id": "k"}
    odd = {"type": "moon_citation"}
    cited = [page, file, {**page, "start_index": 9}, made, odd]
    annotations = [event("output_text.annotation.added", annotation=one) for one in cited[:3]]
    text = whole_text("a", annotations=cited)
    fed, parts = await fed_in_memory(
        response(added(MESSAGE), *text[:-1], *annotations, text[-1], done(MESSAGE))
    )
    sources = [part for part in parts if part["type"] == "source"]
    assert [(part.get("url"), part.get("filename"), part["title"]) for part in sources] == [
        ("https://a.example", None, "A"),
        (None, "a.pdf", "a.pdf"),
        (None, "b.csv", "b.csv"),
    ]
    assert [part.get("provider_metadata") for part in sources] == [
        None,
        {"openai": {"file_id": "f1"}},
        {"openai": {"file_id": "f2", "container_id": "k"}},
    ]
    assert parts[0]["provider_metadata"] == {"openai": {"item_id": "msg_0", "annotations": cited}}
    assert fed.unknown == {"annotation.moon_citation": 1}


@pytest.mark.parametrize(
    ("details", "reason", "raw_reason"),
    [
        ({"reason": "max_output_tokens"}, "length", "max_output_tokens"),
        ({"reason": "content_filter"}, "content-filter", "content_filter"),
        ({"reason": "boredom"}, "other", "boredom"),
        (None, "other", "incomplete"),
    ],
)
async def test_a_response_that_is_incomplete_says_why(details: object, reason: str, raw_reason: str) -> None:
    """What came is there, and it is no error."""
    stream = response(
        added(MESSAGE), *whole_text("a"), done(MESSAGE), status="incomplete", incomplete_details=details
    )
    fed, parts = await fed_in_memory(stream)
    assert words_of(parts) == ["a"]
    assert (fed.reason, fed.raw_reason, fed.error) == (reason, raw_reason, None)


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "error", "code": "server_error", "message": "Oh."},
        {"type": "error", "error": {"type": "server_error", "code": None, "message": "Oh."}},
        {
            "type": "response.failed",
            "response": {"error": {"code": "server_error", "message": "Oh."}},
        },
    ],
    ids=["flat", "nested", "failed"],
)
async def test_an_error_in_mid_stream_keeps_the_text_and_is_told_once(broken: Plain) -> None:
    """The k tokens and the error are both there; `response.failed` tells it again."""
    stream = [*response(added(MESSAGE), said_text("so"), said_text(" far"))[:-1], broken, broken]
    fed, parts = await fed_in_memory(stream)
    assert [part["type"] for part in parts] == ["text", "error"]
    assert (parts[0]["text"], parts[0]["state"]) == ("so far", "done")
    assert fed.error == StreamError("server_error", "Oh.", recoverable=True)
    assert fed.reason == "error"


async def test_a_stream_without_a_terminal_event_is_told_as_cut() -> None:
    """What came is kept."""
    fed, parts = await fed_in_memory(response(added(MESSAGE), said_text("so far"))[:-1])
    assert [part["type"] for part in parts] == ["text", "error"]
    assert fed.error is not None
    assert (fed.error.code, fed.error.recoverable) == ("stream_ended_early", True)


async def test_a_response_that_follows_another_is_another_step() -> None:
    """The same ids and indices again: separate parts, each response with its usage."""
    usage = {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}
    once = response(added(MESSAGE), *whole_text("a"), done(MESSAGE), usage=usage)
    fed, parts = await fed_in_memory([*once, *once])
    assert [part["type"] for part in parts] == ["text", "data", "step-start", "text", "data"]
    assert words_of(parts) == ["a", "a"]
    assert fed.usage == {
        "input_tokens": 1,
        "output_tokens": 2,
        "total_tokens": 3,
        "reasoning_tokens": 1,
        "raw": usage,
    }


def test_what_is_not_known_is_skipped_and_counted() -> None:
    """Events, items and contents, each by its name."""
    reader = OpenAIResponsesReader()
    strange = event("content_part.added", part={"type": "smell"})
    stream = response(
        added({"type": "dream"}),
        done({"type": "dream"}),
        strange,
        {"type": "response.dance"},
        {"type": "response.in_progress"},
        {"type": "keepalive"},
    )
    said(reader, *stream, {"no": "type"})
    assert reader.unknown == {"item.dream": 1, "content.smell": 1, "response.dance": 1, "(no type)": 1}
