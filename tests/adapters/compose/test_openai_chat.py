"""What is composed for Chat Completions: legal whatever happened, and true to the conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam

from midstream.adapters.compose import compose
from midstream.protocol.model import ErrorPart, FilePart, Message, ReasoningPart, TextPart, ToolPart
from tests.adapters.compose.histories import histories, said
from tests.adapters.compose.real_types import exact

TYPE = exact(list[ChatCompletionMessageParam])
LONGEST_ID = 40


@given(histories())
def test_every_history_becomes_legal_messages(history: list[Message]) -> None:
    """The library's types take them, and each call has its one result directly behind its message."""
    messages: list[dict[str, Any]] = [dict(message) for message in compose(history, "openai-chat")]
    without = [
        {key: value for key, value in message.items() if key not in {"reasoning_content", "reasoning"}}
        for message in messages
    ]
    TYPE.validate_python(without)
    waiting: list[str] = []
    seen: set[str] = set()
    before = ""
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        assert (before, message["role"]) != ("user", "user")
        before = message["role"]
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert message["content"] or waiting
        assert all(0 < len(call_id) <= LONGEST_ID and call_id not in seen for call_id in waiting)
        seen.update(waiting)
    assert not waiting


def test_text_alone_is_one_string() -> None:
    """Not every speaker of the format takes a list of parts."""
    history = [said("user", TextPart(text="One."), TextPart(text="Two."))]
    assert compose(history, "openai-chat") == [{"role": "user", "content": "One.\n\nTwo."}]


def test_pictures_sound_and_documents_have_their_own_forms() -> None:
    """What the format has no form for is said in words."""
    picture = FilePart(url="https://h/a.png", media_type="image/png")
    sound = FilePart(url="data:audio/mpeg;base64,AAEC", media_type="audio/mpeg")
    document = FilePart(
        url="data:application/pdf;base64,JVBERg==", media_type="application/pdf", filename="a.pdf"
    )
    letter = FilePart(url="data:text/plain,Dear%20all", media_type="text/plain", filename="a.txt")
    film = FilePart(url="https://h/a.mp4", media_type="video/mp4")
    (message,) = compose([said("user", picture, sound, document, letter, film)], "openai-chat")
    assert message.get("content") == [
        {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "text", "text": "[Attached file: a.txt]\nDear all"},
        {
            "type": "text",
            "text": "[Attached file, whose content is not shown: unnamed, video/mp4, https://h/a.mp4]",
        },
    ]


def test_reasoning_goes_back_with_tool_calls_and_nowhere_else() -> None:
    """DeepSeek refuses a request that lacks it there."""
    thought = ReasoningPart(
        text="Hm.", state="done", provider_metadata={"openai-chat": {"field": "reasoning_content"}}
    )
    call = ToolPart(tool_call_id="c", tool_name="t", state="completed", input={}, output="1")
    answer = TextPart(text="Done.", state="done")
    with_call, _ = compose([said("agent", thought, call)], "openai-chat")
    assert dict(with_call)["reasoning_content"] == "Hm."
    (without,) = compose([said("agent", thought, answer)], "openai-chat")
    assert without == {"role": "assistant", "content": "Done."}


def test_two_messages_of_people_with_nothing_between_them_that_a_model_sees_are_one() -> None:
    """Some who speak the format refuse two of one role in a row."""
    asked, more = said("user", TextPart(text="One.")), said("user", TextPart(text="Two."), sequence=3)
    failed = said("agent", ErrorPart(scope="turn", code="c", message="m", recoverable=True), sequence=2)
    shown = said("agent", FilePart(url="https://h/a.png", media_type="image/png"), sequence=2)
    for between in (failed, shown):
        assert compose([asked, between, more], "openai-chat") == [{"role": "user", "content": "One.\n\nTwo."}]
