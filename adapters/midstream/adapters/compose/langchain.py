"""Composes messages for LangChain's chat models, and for graphs of LangGraph (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from midstream.adapters.compose import metadata
from midstream.adapters.compose.attachments import COMMON, attachment_of
from midstream.adapters.compose.dialogue import OPENING, AgentSaid, Call, Spoken, UserSaid, dialogue
from midstream.adapters.compose.identifiers import CallIds, legal_name
from midstream.adapters.compose.results import Result
from midstream.protocol.model import FilePart, ReasoningPart, TextPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from langchain_core.messages.content import ContentBlock

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value

PROVIDER = "langchain"
ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_ID = 40
LONGEST_NAME = 64
"""What every model behind LangChain takes: it hands ids and names on as they are."""
BLOCKS = {"text", "image", "audio", "video", "file", "text-plain", "image_url"}
"""What the content of a message may be made of."""
KINDS = {"image/": "image", "audio/": "audio", "video/": "video"}
REASONING = "reasoning_content"
"""The field beside the content that some models' reasoning comes in, and that they want it back in."""


def compose(context: Context, *, takes: Collection[str] = COMMON) -> list[BaseMessage]:
    """Return the messages of a request, for ``model.astream`` or for the ``messages`` of a graph's state.

    The first is the user's, and each tool call has its result behind it. Where a step has more than text,
    its content is LangChain's standard blocks, which each integration turns into its provider's form. Many
    raise at a file that their provider does not take: ``takes`` are the media types that yours does
    (``audio/`` for all of a kind); other files are said in words.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    messages: list[BaseMessage] = []
    for one in dialogue(context):
        messages += [_user(one, takes)] if isinstance(one, UserSaid) else _agent(one, ids)
    if messages and not isinstance(messages[0], HumanMessage):
        messages.insert(0, HumanMessage(OPENING))
    return messages


def _user(said: UserSaid, takes: Collection[str]) -> HumanMessage:
    if not any(isinstance(content, FilePart) for content in said.content):
        return HumanMessage("\n\n".join(cast("list[str]", said.content)))
    blocks = [_file(part, takes) if isinstance(part, FilePart) else _text(part) for part in said.content]
    return HumanMessage(content_blocks=cast("list[ContentBlock]", blocks))


def _text(words: str) -> dict[str, Value]:
    return {"type": "text", "text": words}


def _file(part: FilePart, takes: Collection[str]) -> dict[str, Value]:
    file = attachment_of(part)
    kind = next((kind for prefix, kind in KINDS.items() if file.media_type.startswith(prefix)), "file")
    known = file.content or (file.url and kind != "file")  # some raise at the address of a document
    if not known or not file.is_one_of(takes):
        return _text(file.titled_words)
    block: dict[str, Value] = {"type": kind, "mime_type": file.media_type}
    if kind == "file":
        block["extras"] = {"filename": file.filename or "document.pdf"}
    return {**block, "base64": file.base64} if file.content else {**block, "url": file.url}


def _agent(said: AgentSaid, ids: CallIds) -> Iterator[BaseMessage]:
    """Return what the model said in one step, and what came of the calls that the agent ran."""
    calls = [(ids.of(call.part), call) for call in said.calls()]
    blocks = [block for part in said.parts for block in _spoken(part, ids)]
    while blocks and blocks[-1]["type"] == "reasoning" and not calls:
        blocks.pop()  # a stop came before the answer, and no model takes reasoning for one
    if blocks or calls:
        yield _message(blocks, calls, said)
    for call_id, call in calls:
        yield ToolMessage(
            _content(call.result),
            tool_call_id=call_id,
            name=legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME),
            status="error" if call.result.failed else "success",
        )


def _content(result: Result) -> str | list[str | dict[str, Any]]:
    """Return what a tool gave as text, or as the blocks that it gave: pictures, files."""
    blocks = result.output if isinstance(result.output, list) else []
    if blocks and all(isinstance(block, dict) and block.get("type") in BLOCKS for block in blocks):
        return cast("list[str | dict[str, Any]]", blocks)
    return result.text


def _message(blocks: list[dict[str, Value]], calls: list[tuple[str, Call]], said: AgentSaid) -> AIMessage:
    called = [_call(call_id, call) for call_id, call in calls]
    kept = _beside(said, has_calls=bool(calls))
    if all(block.keys() == {"type", "text"} for block in blocks):  # text that has nothing beside it
        words = "".join(cast("str", block["text"]) for block in blocks)
        return AIMessage(words, tool_calls=called, additional_kwargs=kept)
    provider = next(
        (name for part in said.parts if (name := metadata.words(_own(part), "model_provider"))), ""
    )
    origin = {"model_provider": provider} if provider else {}
    content = cast("list[ContentBlock]", [*blocks, *({"type": "tool_call", **call} for call in called)])
    return AIMessage(
        content_blocks=content,
        tool_calls=called,
        additional_kwargs=kept,
        response_metadata={"output_version": "v1", **origin},
    )


def _call(call_id: str, call: Call) -> dict[str, Any]:
    extras = _own(call).get("extras")
    name = legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME)
    called = {"name": name, "args": call.arguments, "id": call_id, "type": "tool_call"}
    return {**called, "extras": extras} if extras else called


def _spoken(part: Spoken, ids: CallIds) -> list[dict[str, Value]]:
    own = _own(part)
    back = {name: own[name] for name in ("id", "extras") if own.get(name)}
    if isinstance(part, TextPart):
        return [{**_text(part.text), **back}] if part.text.strip() else []
    if isinstance(part, ReasoningPart):
        return [{"type": "reasoning", "reasoning": part.text, **back}] if back else []
    if isinstance(part, Call) and part.part.provider_executed is True:
        return _own_call(part, ids)
    return []


def _own_call(call: Call, ids: CallIds) -> list[dict[str, Value]]:
    """Return a call that a model's provider ran, with its result; nothing of one that did not complete."""
    own = _own(call)
    if call.result.failed or "model_provider" not in own:
        return []
    call_id = ids.of(call.part)
    extras = {"extras": own["extras"]} if own.get("extras") else {}
    result = metadata.of(call.part.result_provider_metadata, PROVIDER).get("extras")
    return [
        {
            "type": "server_tool_call",
            "id": call_id,
            "name": call.part.tool_name,
            "args": call.arguments,
            **extras,
        },
        {
            "type": "server_tool_result",
            "tool_call_id": call_id,
            "status": "success",
            "output": call.result.output,
            **({"extras": result} if result else {}),
        },
    ]


def _own(part: Spoken) -> dict[str, Value]:
    given = part.part.call_provider_metadata if isinstance(part, Call) else part.provider_metadata
    return metadata.of(given, PROVIDER)


def _beside(said: AgentSaid, *, has_calls: bool) -> dict[str, Any]:
    """Return what an integration keeps beside the content: signatures, and reasoning of calls."""
    kept: dict[str, Any] = {}
    for part in said.parts:
        given = _own(part).get("additional_kwargs")
        if isinstance(given, dict):
            kept |= given
        if isinstance(part, ReasoningPart) and _own(part).get("field") == REASONING and has_calls:
            kept[REASONING] = kept.get(REASONING, "") + part.text
    return kept
