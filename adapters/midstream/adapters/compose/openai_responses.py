"""Composes input items for the Responses API of OpenAI, and of those who speak it (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from midstream.adapters.compose.attachments import attachment_of
from midstream.adapters.compose.dialogue import UserSaid, dialogue
from midstream.adapters.compose.identifiers import CallIds
from midstream.adapters.compose.openai_items import ILLEGAL, LONGEST_ID, agent_items
from midstream.protocol.model import FilePart

if TYPE_CHECKING:
    from openai.types.responses import ResponseInputItemParam

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value


def compose(context: Context) -> list[ResponseInputItemParam]:
    """Return the input of a request: ``client.responses.create(input=...)``.

    It stands for itself, whether the API stores responses or not: what the API could only look up by
    its id is left out. Reasoning goes back with its encrypted content, before the item that it led to;
    hosted tools go back as they were, where all that they rest on does.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    items: list[dict[str, Value]] = []
    for said in dialogue(context):
        if isinstance(said, UserSaid):
            content: list[Value] = [_content(part) for part in said.content]
            items.append({"type": "message", "role": "user", "content": content})
        else:
            items += agent_items(said, ids)
    return cast("list[ResponseInputItemParam]", items)


def _content(part: str | FilePart) -> Value:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    file = attachment_of(part)
    if file.is_image and (file.content or file.url):
        return {"type": "input_image", "detail": "auto", "image_url": file.url or file.data_url}
    if file.words is not None:
        return {"type": "input_text", "text": file.titled_words}
    if file.url:
        return {"type": "input_file", "file_url": file.url}
    if file.content:
        return {"type": "input_file", "filename": file.filename or "file", "file_data": file.data_url}
    return {"type": "input_text", "text": file.note}
