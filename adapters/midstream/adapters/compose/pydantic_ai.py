"""Composes messages for Pydantic AI: ``agent.run(message_history=...)`` (pure)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec
from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnContent,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from midstream.adapters.compose import metadata
from midstream.adapters.compose.attachments import COMMON, attachment_of
from midstream.adapters.compose.dialogue import OPENING, AgentSaid, Call, Spoken, UserSaid, dialogue
from midstream.adapters.compose.identifiers import CallIds, legal_name
from midstream.protocol import model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from msgspec import UnsetType

    from midstream.adapters.compose.context import Context
    from midstream.protocol.values import Value

PROVIDER = "pydantic-ai"
ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_ID = 40
LONGEST_NAME = 64
"""What every model behind Pydantic AI takes: it hands ids and names on as they are."""
WHEN = datetime(1970, 1, 1, tzinfo=UTC)
"""Of every message, as no model is told: the same conversation gives the same history."""
OUTPUT: TypeAdapter[Any] = TypeAdapter(ToolReturnContent, config=ConfigDict(val_json_bytes="base64"))
"""Reads files out of what a tool gave, and leaves all else as it is."""
ADDRESSES = (("image/", ImageUrl), ("audio/", AudioUrl), ("video/", VideoUrl), ("", DocumentUrl))


def compose(context: Context, *, takes: Collection[str] = COMMON) -> list[ModelMessage]:
    """Return the history of a run, the newest prompt included: ``agent.run(message_history=...)``.

    It begins with a request. Reasoning goes back where Pydantic AI gave it, with its signature; tools
    of a model's provider with their results; files that the agent made where their bytes are there. A model
    raises at a file that it does not take: ``takes`` are the media types that yours does (``audio/`` for all
    of a kind); other files are said in words.
    """
    ids = CallIds(ILLEGAL, LONGEST_ID)
    messages: list[ModelMessage] = []
    for one in dialogue(context):
        messages += [_request([_prompt(one, takes)])] if isinstance(one, UserSaid) else _agent(one, ids)
    if messages and isinstance(messages[0], ModelResponse):
        messages.insert(0, _request([UserPromptPart(OPENING, timestamp=WHEN)]))
    return messages


def _request(parts: list[UserPromptPart | ToolReturnPart[Any]]) -> ModelRequest:
    return ModelRequest(parts=parts, timestamp=WHEN)


def _prompt(said: UserSaid, takes: Collection[str]) -> UserPromptPart:
    if not any(isinstance(content, model.FilePart) for content in said.content):
        return UserPromptPart("\n\n".join(cast("list[str]", said.content)), timestamp=WHEN)
    content = [_file(part, takes) if isinstance(part, model.FilePart) else part for part in said.content]
    return UserPromptPart(content, timestamp=WHEN)


def _file(part: model.FilePart, takes: Collection[str]) -> UserContent:
    file = attachment_of(part)
    if file.content and file.is_one_of(takes):
        return BinaryContent.narrow_type(BinaryContent(file.content, media_type=file.media_type))
    if file.url and file.is_one_of(takes):
        kind = next(kind for prefix, kind in ADDRESSES if file.media_type.startswith(prefix))
        return kind(file.url, media_type=file.media_type)
    return file.titled_words


def _agent(said: AgentSaid, ids: CallIds) -> Iterator[ModelMessage]:
    """Return what the model said in one step, and what came of the calls that the agent ran."""
    parts: list[ModelResponsePart] = []
    returns: list[UserPromptPart | ToolReturnPart[Any]] = []
    extra: list[UserPromptPart | ToolReturnPart[Any]] = []
    for part in said.parts:
        if not isinstance(part, Call):
            parts += _spoken(part)
        elif part.part.provider_executed is True:
            parts += _own_call(part, ids)
        else:
            call_id = ids.of(part.part)
            parts.append(_call(part, call_id))
            returns.append(_return(part, call_id))
            extra += _content(part)
    while parts and isinstance(parts[-1], ThinkingPart):
        parts.pop()  # a stop came before the answer, and no model takes thinking for one
    if parts:
        yield _response(parts, said)
    if returns:
        yield _request([*returns, *extra])


def _response(parts: list[ModelResponsePart], said: AgentSaid) -> ModelResponse:
    """Return the response, with whose signatures its parts have: it shares these fields with them."""
    return ModelResponse(
        parts=parts,
        timestamp=WHEN,
        provider_name=_shared(said, "provider_name"),
        canonical_system=_shared(said, "canonical_system"),
    )


def _shared(said: AgentSaid, name: str) -> str | None:
    return next((given for part in said.parts if (given := metadata.words(_own(part), name))), None)


def _own(part: Spoken) -> dict[str, Value]:
    given = part.part.call_provider_metadata if isinstance(part, Call) else part.provider_metadata
    return metadata.of(given, PROVIDER)


def _spoken(part: model.TextPart | model.ReasoningPart | model.FilePart) -> list[ModelResponsePart]:
    own = metadata.of(part.provider_metadata, PROVIDER)
    match part:
        case model.TextPart():
            return [TextPart(part.text, **_back(own))] if part.text.strip() or own else []
        case model.FilePart():
            file = attachment_of(part)
            content = BinaryContent(file.content or b"", media_type=file.media_type)
            return [FilePart(BinaryContent.narrow_type(content), **_back(own))] if file.content else []
        case model.ReasoningPart() if own.get("part_kind") == "compaction":
            return [CompactionPart(part.text or None, **_back(own))]
        case model.ReasoningPart():
            signature = metadata.words(own, "signature") or None
            return [ThinkingPart(part.text, signature=signature, **_back(own))] if own else []


def _back(own: dict[str, Value]) -> dict[str, Any]:
    """Return the fields of a part that its provider wants back; without its name they say nothing."""
    name, details = metadata.words(own, "provider_name"), own.get("provider_details")
    if not name:
        return {}
    return {
        "id": metadata.words(own, "id") or None,
        "provider_name": name,
        "provider_details": details if isinstance(details, dict) else None,
    }


def _call(call: Call, call_id: str) -> ToolCallPart[Any]:
    own = metadata.of(call.part.call_provider_metadata, PROVIDER)
    return ToolCallPart(
        legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME), call.arguments, call_id, **_back(own)
    )


def _return(call: Call, call_id: str) -> ToolReturnPart[Any]:
    return ToolReturnPart(
        legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME),
        _with_files(call.result.output),
        call_id,
        timestamp=WHEN,
        outcome=_outcome(call),
    )


def _with_files(output: Value) -> Any:  # noqa: ANN401  # as the library has it
    return OUTPUT.validate_json(msgspec.json.encode(output)) if isinstance(output, (list, dict)) else output


def _outcome(call: Call) -> Literal["success", "failed", "denied", "interrupted"]:
    if not call.result.failed:
        return "success"
    if call.approved is False:
        return "denied"
    return "failed" if call.part.state == "failed" else "interrupted"


def _content(call: Call) -> list[UserPromptPart | ToolReturnPart[Any]]:
    """Return what the tool gave the model beside its result; files of it are left out."""
    given = metadata.of(call.part.result_provider_metadata, PROVIDER).get("content")
    texts = [
        text for text in (given if isinstance(given, list) else [given]) if isinstance(text, str) and text
    ]
    return [UserPromptPart("\n\n".join(texts), timestamp=WHEN)] if texts else []


def _own_call(call: Call, ids: CallIds) -> list[ModelResponsePart]:
    """Return a call that a model's provider ran, with its result; nothing of one that did not complete."""
    own = metadata.of(call.part.call_provider_metadata, PROVIDER)
    if call.result.failed or not metadata.words(own, "provider_name"):
        return []
    call_id, kind = ids.of(call.part), metadata.words(own, "tool_kind") or None
    back = _back(_owned(call.part.result_provider_metadata, own))
    back.pop("id")
    return [
        NativeToolCallPart(call.part.tool_name, call.arguments, call_id, tool_kind=kind, **_back(own)),
        NativeToolReturnPart(
            call.part.tool_name,
            _with_files(call.result.output),
            call_id,
            tool_kind=kind,
            timestamp=WHEN,
            **back,
        ),
    ]


def _owned(given: model.ProviderMetadata | UnsetType, call: dict[str, Value]) -> dict[str, Value]:
    """Return the result's own fields, under the name of the provider that ran the call."""
    return {**metadata.of(given, PROVIDER), "provider_name": call["provider_name"]}
