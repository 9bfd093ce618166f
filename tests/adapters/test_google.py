"""Gemini's chunks: what each kind of part becomes, and what is kept to go back."""

from __future__ import annotations

import pytest

from midstream.adapters.events import (
    Data,
    DocumentSource,
    Finished,
    Refusal,
    StepBoundary,
    StreamError,
    TextEnded,
    UrlSource,
)
from midstream.adapters.google import GoogleReader
from midstream.adapters.plain import items
from tests.adapters.google_events import Plain, call, chunk, text
from tests.adapters.memory import fed_in_memory, said, words_of


def own(**fields: object) -> Plain:
    """What is kept for the next request."""
    return {"google": fields}


async def test_texts_that_follow_each_other_are_one_and_thoughts_are_apart() -> None:
    """The chunks have no ids: a part goes on until one of another kind comes."""
    fed, parts = await fed_in_memory(
        [
            chunk(text("Hm", thought=True)),
            chunk(text(".", thought=True), text("Hel")),
            chunk(text("lo"), text("", thought=True), finish="STOP"),
        ]
    )
    assert parts == [
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        {"type": "text", "text": "Hello", "state": "done"},
    ]
    assert (fed.reason, fed.raw_reason, fed.error, fed.unknown) == ("stop", "STOP", None, {})


async def test_a_signature_ends_its_part_and_is_kept_with_it() -> None:
    """In a part of its own it belongs behind the text; with no text before it, it is one."""
    _, parts = await fed_in_memory(
        [
            chunk(text("Hm.", thought=True, thoughtSignature="c2ln")),
            chunk(text("One."), text("", thoughtSignature="YmVo")),
            chunk({"thoughtSignature": "bG9uZQ=="}, text("Two."), finish="STOP"),
        ]
    )
    assert [(part["text"], part.get("provider_metadata")) for part in parts] == [
        ("Hm.", own(thought_signature="c2ln")),
        ("One.", own(thought_signature="YmVo", signature_follows=True)),
        ("", own(thought_signature="bG9uZQ==")),
        ("Two.", None),
    ]


def test_a_signature_is_kept_in_the_alphabet_of_the_wire() -> None:
    """google-genai writes base64 in another one."""
    heard = said(GoogleReader(), chunk(text("One.", thoughtSignature="-_8="), finish="STOP"))
    assert TextEnded("1:text", {"google": {"thought_signature": "+/8="}}) in heard


async def test_a_call_comes_whole_with_its_signature_and_is_for_the_agent() -> None:
    """Gemini gives an id or none; where it gave none, the call has one of ours that is not sent back."""
    fed, parts = await fed_in_memory(
        [chunk(call("f", {"a": 1}, signature="c2ln"), call("g", id="fc_2")), chunk(finish="STOP")]
    )
    first, second = parts
    assert (first["tool_name"], first["input"], first["state"]) == ("f", {"a": 1}, "ready")
    assert first["call_provider_metadata"] == own(thought_signature="c2ln")
    assert first["tool_call_id"]
    assert (second["tool_call_id"], second["input"]) == ("fc_2", {})
    assert second["call_provider_metadata"] == own(id="fc_2")
    assert (fed.reason, fed.raw_reason, len(fed.calls)) == ("tool-calls", "STOP", 2)


async def test_code_and_its_result_are_a_call_of_the_providers_own() -> None:
    """The result is whatever it was: a failure of the code is no failure of the tool."""
    _, parts = await fed_in_memory(
        [
            chunk({"executableCode": {"language": "PYTHON", "code": "1/0"}, "thoughtSignature": "c2ln"}),
            chunk({"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}}),
            chunk(finish="STOP"),
        ]
    )
    (part,) = parts
    assert {name: part[name] for name in ("tool_name", "state", "input", "output", "provider_executed")} == {
        "tool_name": "code_execution",
        "state": "completed",
        "input": {"language": "PYTHON", "code": "1/0"},
        "output": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"},
        "provider_executed": True,
    }
    assert part["call_provider_metadata"] == own(type="executableCode", thought_signature="c2ln")


async def test_answers_of_the_providers_tools_find_their_calls_by_id() -> None:
    """In whatever order they come; one without its call is counted."""
    calls: list[Plain] = [
        {"toolCall": {"id": name, "toolType": "URL_CONTEXT", "args": {"n": name}}} for name in ("a", "b")
    ]
    answers: list[Plain] = [{"toolResponse": {"id": name, "response": {"of": name}}} for name in ("b", "a")]
    lost: Plain = {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}
    fed, parts = await fed_in_memory([chunk(*calls), chunk(*answers, lost, finish="STOP")])
    assert [(part["tool_name"], part["tool_call_id"], part["output"]) for part in parts] == [
        ("url_context", "a", {"of": "a"}),
        ("url_context", "b", {"of": "b"}),
    ]
    assert fed.unknown == {"answer without its executableCode": 1}


async def test_the_result_of_code_is_never_that_of_another_tool() -> None:
    """It has no id; the other tool was called before it, and is still open."""
    other: Plain = {"toolCall": {"id": "a", "toolType": "URL_CONTEXT", "args": {}}}
    code: Plain = {"executableCode": {"language": "PYTHON", "code": "1"}}
    result: Plain = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    _, parts = await fed_in_memory([chunk(other, code, result, finish="STOP")])
    assert [(part["tool_name"], part["state"]) for part in parts] == [
        ("url_context", "ready"),
        ("code_execution", "completed"),
    ]


async def test_functions_that_the_library_called_itself_have_their_answers_and_a_new_step_begins() -> None:
    """google-genai can run functions and ask again; the answers stand in the next response's history."""
    answers: list[Plain] = [
        {"functionResponse": {"name": "f", "response": {"result": 2}}},
        {"functionResponse": {"name": "f", "response": {"result": 1}}},
    ]
    again = chunk(text("Done."), finish="STOP", response="r2")
    again["automaticFunctionCallingHistory"] = [{"role": "user", "parts": answers}]
    fed, parts = await fed_in_memory([chunk(call("f"), call("f"), finish="STOP"), again])
    assert [(part["type"], part.get("output"), part.get("text")) for part in parts] == [
        ("tool", {"result": 2}, None),
        ("tool", {"result": 1}, None),
        ("step-start", None, None),
        ("text", None, "Done."),
    ]
    assert (fed.reason, fed.calls) == ("stop", [])


async def test_an_answer_that_stands_in_the_stream_is_that_of_its_call() -> None:
    """By its id where both have one."""
    answers: list[Plain] = [
        {"functionResponse": {"name": "f", "id": name, "response": {"of": name}}} for name in ("b", "a")
    ]
    fed, parts = await fed_in_memory(
        [chunk(call("f", id="a"), call("f", id="b")), chunk(*answers, finish="STOP")]
    )
    assert [part["output"] for part in parts] == [{"of": "a"}, {"of": "b"}]
    assert fed.calls == []


async def test_a_reason_in_every_chunk_begins_no_new_answer() -> None:
    """Older models send it so."""
    _, parts = await fed_in_memory([chunk(text("Hel"), finish="STOP"), chunk(text("lo"), finish="STOP")])
    assert [part["type"] for part in parts] == ["text"]
    assert words_of(parts) == ["Hello"]


async def test_a_response_that_the_library_continues_stays_one() -> None:
    """A hop without a reason before it is no new answer."""
    _, parts = await fed_in_memory([chunk(text("Hel")), chunk(text("lo"), finish="STOP", response="r2")])
    assert words_of(parts) == ["Hello"]


async def test_pictures_become_files_by_data_urls_in_the_usual_alphabet() -> None:
    """google-genai writes another one; a picture that was only thought of is not shown."""
    picture: Plain = {"inlineData": {"mimeType": "image/png", "data": "-_8="}}
    kept: Plain = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://h/a.mp4"}}
    _, parts = await fed_in_memory(
        [chunk({**picture, "thought": True}, {**picture, "thoughtSignature": "c2ln"}, kept, finish="STOP")]
    )
    assert parts == [
        {
            "type": "file",
            "url": "data:image/png;base64,+/8=",
            "media_type": "image/png",
            "provider_metadata": own(type="inlineData", thought_signature="c2ln"),
        },
        {
            "type": "file",
            "url": "https://h/a.mp4",
            "media_type": "video/mp4",
            "provider_metadata": own(type="fileData"),
        },
    ]


def test_what_the_answer_rests_on_is_a_source_once() -> None:
    """Pages, places, pictures, retrieved documents, pages that were read, quotations."""
    chunks: list[Plain] = [
        {"web": {"uri": "https://x/", "title": "X"}},
        {"maps": {"uri": "https://maps/1", "title": "Cafe"}},
        {"image": {"sourceUri": "https://pictures/1", "imageUri": "https://pictures/1.png"}},
        {"retrievedContext": {"uri": "gs://b/report.pdf", "title": "Report"}},
        {"retrievedContext": {"uri": "https://drive/1", "title": "Sheet"}},
        {"retrievedContext": {"title": "notes.md"}},
        {"somethingNew": {}},
    ]
    grounding: Plain = {"groundingChunks": chunks, "webSearchQueries": ["x"]}
    read: Plain = {
        "urlMetadata": [
            {"retrievedUrl": "https://read/", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"},
            {"retrievedUrl": "https://lost/", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR"},
        ]
    }
    quoted: Plain = {"citations": [{"uri": "https://quoted/"}, {"startIndex": 1}]}
    one = chunk(groundingMetadata=grounding, urlContextMetadata=read, citationMetadata=quoted, finish="STOP")
    heard = said(GoogleReader(), one, one)
    sources = [source for source in heard if isinstance(source, (UrlSource, DocumentSource))]
    assert sources == [
        UrlSource("https://x/", "X"),
        UrlSource("https://maps/1", "Cafe"),
        UrlSource("https://pictures/1"),
        DocumentSource("application/pdf", "Report", filename="report.pdf"),
        UrlSource("https://drive/1", "Sheet"),
        DocumentSource("text/markdown", "notes.md", filename="notes.md"),
        UrlSource("https://read/"),
        UrlSource("https://quoted/"),
    ]
    assert Data("grounding", {"webSearchQueries": ["x"]}) in heard


async def test_usage_counts_thoughts_as_output_and_what_tools_brought_as_input() -> None:
    """The last numbers count: each chunk has them anew."""
    numbers: list[Plain] = [
        {"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6},
        {
            "promptTokenCount": 5,
            "toolUsePromptTokenCount": 2,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 4,
            "cachedContentTokenCount": 1,
            "totalTokenCount": 14,
        },
    ]
    stream = [{**chunk(finish="STOP"), "usageMetadata": used} for used in numbers]
    fed, _ = await fed_in_memory(stream)
    assert fed.usage == {
        "input_tokens": 7,
        "output_tokens": 7,
        "total_tokens": 14,
        "reasoning_tokens": 4,
        "cached_tokens": 1,
        "raw": numbers[1],
    }


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("MAX_TOKENS", "length"),
        ("RECITATION", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("SOMETHING_NEW", "other"),
    ],
)
async def test_the_reason_is_told_in_our_words_and_in_theirs(raw: str, reason: str) -> None:
    """One that is not known is ``other``."""
    fed, _ = await fed_in_memory([chunk(text("x"), finish=raw)])
    assert (fed.reason, fed.raw_reason) == (reason, raw)


def test_a_prompt_that_is_blocked_and_an_answer_that_is_stopped_are_refusals() -> None:
    """In the provider's words where it has some, else by its code."""
    blocked: Plain = {"promptFeedback": {"blockReason": "JAILBREAK", "blockReasonMessage": "No."}}
    assert said(GoogleReader(), blocked) == [Refusal("No."), Finished("content-filter", "JAILBREAK")]
    stopped = said(GoogleReader(), chunk(finish="SAFETY", finishMessage="Not so."))
    assert stopped == [Refusal("Not so."), Finished("content-filter", "SAFETY")]
    (bare, _) = said(GoogleReader(), {"promptFeedback": {"blockReason": "OTHER"}})
    assert bare == Refusal("The prompt was blocked: OTHER.")


@pytest.mark.parametrize(("status", "recoverable"), [(503, True), (429, True), (400, False)])
async def test_an_error_in_mid_stream_keeps_the_text(status: int, *, recoverable: bool) -> None:
    """A server that is busy may answer when asked again."""
    error: Plain = {"error": {"code": status, "status": "SOME", "message": "Oh."}}
    fed, parts = await fed_in_memory([chunk(text("so far")), error])
    assert words_of(parts) == ["so far"]
    assert fed.error == StreamError("SOME", "Oh.", recoverable=recoverable)


async def test_a_stream_that_ends_without_a_reason_is_an_error() -> None:
    """A connection that is lost looks just so."""
    fed, parts = await fed_in_memory([chunk(text("so far"))])
    assert words_of(parts) == ["so far"]
    assert fed.error is not None
    assert fed.error.code == "stream_ended_early"


async def test_what_is_not_known_is_counted_and_the_rest_goes_on() -> None:
    """Fields of a part, and candidates beside the first."""
    one = chunk(text("Hi", hologram={}), {"smell": {}}, finish="STOP")
    one["candidates"] = [*items(one, "candidates"), {"index": 1}]
    fed, parts = await fed_in_memory([one])
    assert words_of(parts) == ["Hi"]
    assert fed.unknown == {"part:hologram": 1, "part:smell": 1, "candidate 1": 1}


def test_a_second_response_begins_a_step() -> None:
    """Its parts belong to another answer of the model."""
    heard = said(
        GoogleReader(), chunk(text("a"), finish="STOP"), chunk(text("b"), finish="STOP", response="r2")
    )
    assert sum(isinstance(one, StepBoundary) for one in heard) == 1
