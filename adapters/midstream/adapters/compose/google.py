"""Composes contents for Gemini's ``generateContent`` (pure).

They have the names of the wire, which google-genai takes as well as its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from midstream.adapters.compose.attachments import attachment_of
from midstream.adapters.compose.dialogue import OPENING, AgentSaid, UserSaid, dialogue
from midstream.adapters.compose.google_parts import ILLEGAL, LONGEST_ID, answers, model_parts
from midstream.adapters.compose.identifiers import CallIds
from midstream.protocol.model import FilePart

if TYPE_CHECKING:
    from google.genai.types import ContentDict

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value


def compose(context: Context) -> list[ContentDict]:
    """Return the contents of a request: ``client.aio.models.generate_content_stream(contents=...)``.

    The first is the user's, no two of the model's follow each other, and as many function responses
    as a step has function calls stand directly behind it, in a content of their own: Gemini takes what
    shares one with them for the model's words. Thought signatures go back in the parts they came in.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    contents: list[dict[str, Value]] = []
    for one in dialogue(context):
        if isinstance(one, UserSaid):
            contents.append({"role": "user", "parts": [_content(content) for content in one.content]})
        else:
            _agent(contents, one, ids)
    if contents and contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    return cast("list[ContentDict]", contents)


def _agent(contents: list[dict[str, Value]], said: AgentSaid, ids: CallIds) -> None:
    parts, calls = model_parts(said, ids)
    if parts:
        before = contents[-1] if contents else {}
        if before.get("role") == "model":
            contents[-1] = {"role": "model", "parts": [*cast("list[Value]", before["parts"]), *parts]}
        else:
            contents.append({"role": "model", "parts": parts})
    if calls:
        contents.append({"role": "user", "parts": answers(calls)})


def _content(content: str | FilePart) -> Value:
    if isinstance(content, str):
        return {"text": content}
    file = attachment_of(content)
    if file.url:
        return {"fileData": {"mimeType": file.media_type, "fileUri": file.url}}
    if file.words is not None:
        return {"text": file.titled_words}
    if file.content:
        return {"inlineData": {"mimeType": file.media_type, "data": file.base64}}
    return {"text": file.note}
