"""Composes messages for Anthropic's Messages API (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from midstream.adapters.compose.anthropic_blocks import ILLEGAL, LONGEST_ID, agent_blocks, result_block
from midstream.adapters.compose.attachments import Attachment, attachment_of
from midstream.adapters.compose.dialogue import OPENING, UserSaid, dialogue
from midstream.adapters.compose.identifiers import CallIds
from midstream.protocol.model import FilePart

if TYPE_CHECKING:
    from anthropic.types import MessageParam

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value

IMAGES = {"image/gif", "image/jpeg", "image/png", "image/webp"}
PDF = "application/pdf"


def compose(context: Context) -> list[MessageParam]:
    """Return the messages of a request: ``client.messages.create(messages=...)``.

    The first is the user's, roles alternate, and the results of a step's calls begin the message
    behind it. Thinking goes back where its signature is there, redacted thinking as it came, tools
    of the provider with their results. Files that the agent made are left out, as there is no form for them.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    said = dialogue(context)
    messages: list[tuple[str, list[dict[str, Value]]]] = []
    for number, one in enumerate(said):
        if isinstance(one, UserSaid):
            _add(messages, "user", [_content(content) for content in one.content])
            continue
        pauses = number == len(said) - 1
        blocks, calls = agent_blocks(one, ids, pauses=pauses)
        if blocks:
            _add(messages, "assistant", blocks)
        _add(messages, "user", [result_block(call_id, call) for call_id, call in calls])
    if messages and messages[0][0] == "assistant":
        messages.insert(0, ("user", [{"type": "text", "text": OPENING}]))
    _trim(messages)
    return cast("list[MessageParam]", [{"role": role, "content": content} for role, content in messages])


def _add(
    messages: list[tuple[str, list[dict[str, Value]]]], role: str, content: list[dict[str, Value]]
) -> None:
    if content and messages and messages[-1][0] == role:
        messages[-1][1].extend(content)
    elif content:
        messages.append((role, content))


def _content(content: str | FilePart) -> dict[str, Value]:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    file = attachment_of(content)
    source = _source(file)
    if source is None:
        return {"type": "text", "text": file.note}
    if file.is_image:
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **({"title": file.filename} if file.filename else {})}


def _source(file: Attachment) -> Value:
    """Return where the provider gets a file from; None where it cannot take it."""
    if file.url and file.media_type in {*IMAGES, PDF}:
        return {"type": "url", "url": file.url}
    if file.content and file.media_type in {*IMAGES, PDF}:
        return {"type": "base64", "media_type": file.media_type, "data": file.base64}
    if file.words is not None:
        return {"type": "text", "media_type": "text/plain", "data": file.words}
    return None


def _trim(messages: list[tuple[str, list[dict[str, Value]]]]) -> None:
    """Where the agent spoke last, its text may not end with white space."""
    if not messages or messages[-1][0] != "assistant":
        return
    last = messages[-1][1][-1]
    words = last.get("text")
    if last["type"] == "text" and isinstance(words, str):
        messages[-1][1][-1] = {**last, "text": words.rstrip()}
