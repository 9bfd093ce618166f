"""Composes messages for Chat Completions of OpenAI, and of those who speak it (pure)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, cast

from midstream.adapters.compose import metadata
from midstream.adapters.compose.attachments import attachment_of
from midstream.adapters.compose.dialogue import AgentSaid, Call, UserSaid, dialogue
from midstream.adapters.compose.identifiers import CallIds, legal_name
from midstream.adapters.compose.results import as_json
from midstream.protocol.model import FilePart, ReasoningPart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openai.types.chat import ChatCompletionMessageParam

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value

PROVIDER = "openai-chat"
ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_ID = 40
LONGEST_NAME = 64
REASONING = {"reasoning", "reasoning_content"}
"""Fields of a message that speakers of the format put reasoning in, and want back with tool calls."""
AUDIO = {"audio/mp3": "mp3", "audio/wav": "wav"}


def compose(context: Context) -> list[ChatCompletionMessageParam]:
    """Return the messages of a request: ``client.chat.completions.create(messages=...)``.

    Reasoning goes back only in the steps that call tools, and only to those who name it: DeepSeek
    refuses it elsewhere, and a request without it there. Files that the agent made are left out, as
    there is no form for them.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    messages: list[dict[str, Value]] = []
    asked: list[str | FilePart] = []
    for _, group in groupby(dialogue(context), lambda one: isinstance(one, UserSaid)):
        said = list(group)
        asked += [content for one in said if isinstance(one, UserSaid) for content in one.content]
        answers = list(_agent((one for one in said if isinstance(one, AgentSaid)), ids))
        if answers:  # of what the agent said, nothing may be left
            messages += [*_user(asked), *answers]
            asked = []
    return cast("list[ChatCompletionMessageParam]", [*messages, *_user(asked)])


def _user(said: list[str | FilePart]) -> list[dict[str, Value]]:
    if not said:
        return []
    if not any(isinstance(content, FilePart) for content in said):
        return [{"role": "user", "content": "\n\n".join(cast("list[str]", said))}]
    content: list[Value] = [
        _file(part) if isinstance(part, FilePart) else {"type": "text", "text": part} for part in said
    ]
    return [{"role": "user", "content": content}]


def _file(part: FilePart) -> Value:
    file = attachment_of(part)
    if file.is_image and (file.content or file.url):
        return {"type": "image_url", "image_url": {"url": file.url or file.data_url}}
    if file.content and file.media_type in AUDIO:
        return {
            "type": "input_audio",
            "input_audio": {"data": file.base64, "format": AUDIO[file.media_type]},
        }
    if file.content and file.media_type == "application/pdf":
        return {
            "type": "file",
            "file": {"filename": file.filename or "document.pdf", "file_data": file.data_url},
        }
    return {"type": "text", "text": file.titled_words}


def _agent(steps: Iterable[AgentSaid], ids: CallIds) -> Iterator[dict[str, Value]]:
    """Return one message for each step that calls tools, its results behind it; other steps join the next."""
    texts: list[str] = []
    for step in steps:
        words = "".join(part.text for part in step.parts if isinstance(part, TextPart))
        texts += [words] if words.strip() else []
        calls = [(ids.of(call.part), call) for call in step.calls()]
        if calls:
            content: Value = "\n\n".join(texts) or None
            called: list[Value] = [_call(call_id, call) for call_id, call in calls]
            yield {"role": "assistant", "content": content, **_reasoning(step), "tool_calls": called}
            yield from (_result(call_id, call) for call_id, call in calls)
            texts = []
    if texts:
        yield {"role": "assistant", "content": "\n\n".join(texts)}


def _call(call_id: str, call: Call) -> Value:
    return {
        "id": call_id,
        "type": "function",
        "function": {
            "name": legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME),
            "arguments": as_json(call.arguments),
        },
    }


def _result(call_id: str, call: Call) -> dict[str, Value]:
    words = call.result.text
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": f"Error: {words}" if call.result.failed else words,
    }


def _reasoning(step: AgentSaid) -> dict[str, Value]:
    fields: dict[str, str] = {}
    for part in step.parts:
        if isinstance(part, ReasoningPart):
            field = metadata.words(metadata.of(part.provider_metadata, PROVIDER), "field")
            if field in REASONING and part.text:
                fields[field] = fields.get(field, "") + part.text
    return dict(fields)
