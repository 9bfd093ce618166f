"""Which reader a stream needs: told by its first event, and never by the provider's library being there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from midstream.adapters.detect import READERS, format_of, reader_for, reader_named
from midstream.adapters.openai_chat import OpenAIChatReader
from midstream.adapters.reader import Reader
from tests.adapters.openai_events import chunk
from tests.adapters.recordings import lines_of, recordings


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (chunk(content="a"), "openai-chat"),
        ({"choices": [], "prompt_filter_results": []}, "openai-chat"),
        ({"error": {"message": "Oh."}}, "openai-chat"),
        ({"type": "response.created"}, "openai-responses"),
        ({"type": "ping"}, "anthropic"),
        ({"type": "message_start", "message": {}}, "anthropic"),
        ({"candidates": []}, "google"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "google"),
        ('{"choices":[]}', "openai-chat"),
        ({"poem": 1}, None),
        (7, None),
        (frozenset[int](), None),
    ],
)
def test_a_plain_event_is_told_by_its_shape(event: object, name: str | None) -> None:
    """By a field that only its format has."""
    assert format_of(event) == name


@pytest.mark.parametrize(
    "path",
    [
        path
        for name in ("openai-chat", "openai-responses", "anthropic", "google")
        for path in recordings(name)
    ],
)
def test_every_recorded_stream_is_told_by_its_first_event(path: Path) -> None:
    """Its folder is its format."""
    assert format_of(lines_of(path)[0]) == path.parent.name


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("openai.types.chat.chat_completion_chunk", "openai-chat"),
        ("openai.lib.streaming.chat._events", "openai-chat"),
        ("openai.types.responses.response_created_event", "openai-responses"),
        ("openai.lib.streaming.responses._events", "openai-responses"),
        ("groq.types.chat.chat_completion_chunk", "openai-chat"),
        ("mistralai.models.completionevent", "openai-chat"),
        ("anthropic.types.raw_message_start_event", "anthropic"),
        ("google.genai.types", "google"),
        ("pydantic_ai.messages", "pydantic-ai"),
        ("langchain_core.messages.ai", "langchain"),
        ("my.own.events", None),
        ("openaiish.events", None),
    ],
)
def test_a_librarys_object_is_told_by_its_module(module: str, name: str | None) -> None:
    """Also an object of a class that somebody derived."""
    kind = type("Event", (), {"__module__": module})
    derived = type("Derived", (kind,), {"__module__": "somebody.elses"})
    assert (format_of(kind()), format_of(derived())) == (name, name)


def test_a_reader_is_a_new_one_each_time() -> None:
    """It keeps what it has read."""
    first, second = reader_for(chunk()), reader_for(chunk())
    assert isinstance(first, OpenAIChatReader)
    assert first is not second
    assert all(isinstance(reader_named(name), Reader) for name in READERS)


def test_what_cannot_be_told_is_refused_with_what_to_do() -> None:
    """It names the type, and how to give a reader."""
    with pytest.raises(TypeError, match=r"a stream of builtins\.dict.*reader=.*anthropic"):
        reader_for({"poem": 1})


READ_ALL = """
import sys
from midstream.adapters.detect import READERS, reader_named
import midstream.adapters
for name in READERS:
    reader_named(name)
print(sorted({"openai", "anthropic", "google", "pydantic_ai", "langchain_core"} & sys.modules.keys()))
"""


def test_no_reader_imports_its_providers_library() -> None:
    """A stream of theirs can come only from a program that has it; others start without."""
    found = subprocess.run([sys.executable, "-c", READ_ALL], capture_output=True, text=True, check=True)
    assert found.stdout.strip() in {"[]", "['google']"}  # a namespace that other packages share
