"""What a step is in Gemini's form: its parts, and the answers to the functions that it calls (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET

from midstream.adapters.compose import metadata
from midstream.adapters.compose.attachments import attachment_of
from midstream.adapters.compose.dialogue import AgentSaid, Call
from midstream.adapters.compose.identifiers import CallIds, legal_name
from midstream.protocol.model import FilePart, ReasoningPart, TextPart

if TYPE_CHECKING:
    from midstream.adapters.compose.dialogue import Spoken
    from midstream.protocol.values import Value

    Fields: TypeAlias = dict[str, Value]

PROVIDER = "google"
ILLEGAL = r"[^a-zA-Z0-9_.:-]"
LONGEST_ID = 128
LONGEST_NAME = 64
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini takes in place of the signature of a step's first function call, where that is not its own."""
REFUSED = {"media_processing"}
"""Tools of Gemini's own whose calls it refuses when they come back."""


def model_parts(said: AgentSaid, ids: CallIds) -> tuple[list[Value], list[tuple[str, Call]]]:
    """Return the parts of a step, and its function calls, each with the id that Gemini gave it, or none."""
    parts: list[Value] = []
    calls: list[tuple[str, Call]] = []
    for part in said.parts:
        if isinstance(part, Call) and not part.part.provider_executed:
            call_id = _id(part, ids)
            calls.append((call_id, part))
            parts.append(_function_call(call_id, part, first=len(calls) == 1))
        else:
            parts += _own(part)
    return parts, calls


def answers(calls: list[tuple[str, Call]]) -> list[Value]:
    """Return the responses to function calls, in their order."""
    return [_function_response(call_id, call) for call_id, call in calls]


def _own(part: Spoken) -> list[Value]:
    if isinstance(part, TextPart):
        own = metadata.of(part.provider_metadata, PROVIDER)
        return _signed({"text": part.text}, own) if part.text.strip() or _signature(own) else []
    if isinstance(part, ReasoningPart):
        own = metadata.of(part.provider_metadata, PROVIDER)
        return _signed({"text": part.text, "thought": True}, own) if _signature(own) else []
    if isinstance(part, FilePart):
        return _file(part)
    return _own_call(part)


def _signed(fields: Fields, own: Fields) -> list[Value]:
    """Return a part with its signature; behind it, in an empty one, where it came so."""
    signature = _signature(own)
    if not signature:
        return [fields]
    if own.get("signature_follows") is True and fields.get("text"):
        return [fields, {"text": "", "thoughtSignature": signature}]
    return [{**fields, "thoughtSignature": signature}]


def _signature(own: Fields) -> str:
    return metadata.words(own, "thought_signature")


def _file(part: FilePart) -> list[Value]:
    own = metadata.of(part.provider_metadata, PROVIDER)
    file = attachment_of(part)
    if not own:
        return []  # made by another provider's model: Gemini takes back only what it made
    if file.content:
        return _signed({"inlineData": {"mimeType": file.media_type, "data": file.base64}}, own)
    return _signed({"fileData": {"mimeType": file.media_type, "fileUri": part.url}}, own) if file.url else []


def _function_call(call_id: str, call: Call, *, first: bool) -> Value:
    own = metadata.of(call.part.call_provider_metadata, PROVIDER)
    signature = _signature(own) or (NO_SIGNATURE if first else "")
    signed: Fields = {"thoughtSignature": signature} if signature else {}
    return {"functionCall": {**_named(call_id, call), "args": call.arguments}, **signed}


def _function_response(call_id: str, call: Call) -> Value:
    output = call.result.output
    if call.result.failed:
        response: Fields = {"error": call.result.text}
    else:  # a key ``$ref`` anywhere would name a part of the response that is not there
        response = {"output": call.result.text if _has_reference(output) else output}
    return {"functionResponse": {**_named(call_id, call), "response": response}}


def _named(call_id: str, call: Call) -> Fields:
    name = legal_name(call.part.tool_name, ILLEGAL, LONGEST_NAME)
    name = name if name[0].isalpha() or name[0] == "_" else f"_{name}"[:LONGEST_NAME]
    return {"id": call_id, "name": name} if call_id else {"name": name}


def _id(call: Call, ids: CallIds) -> str:
    """Return the id of a call where Gemini gave one; calls without are answered in their order."""
    given = ids.of(call.part)
    return given if metadata.words(metadata.of(call.part.call_provider_metadata, PROVIDER), "id") else ""


def _has_reference(value: Value) -> bool:
    if isinstance(value, dict):
        return "$ref" in value or any(_has_reference(item) for item in value.values())
    return isinstance(value, list) and any(_has_reference(item) for item in value)


def _own_call(call: Call) -> list[Value]:
    """Return a call of Gemini's own and its result; nothing where it has none, or was another provider's."""
    part = call.part
    own = metadata.of(part.call_provider_metadata, PROVIDER)
    answered = metadata.of(part.result_provider_metadata, PROVIDER)
    kind, call_id = metadata.words(own, "type"), metadata.words(own, "id")
    output = call.result.output
    if part.state != "completed" or part.input is UNSET or not isinstance(output, dict):
        return []
    named: Fields = {"id": call_id} if call_id else {}
    if kind == "executableCode":
        code: Fields = {"executableCode": {**call.arguments, **named}}
        return [*_signed(code, own), *_signed({"codeExecutionResult": {**output, **named}}, answered)]
    if kind == "toolCall" and call_id and part.tool_name not in REFUSED:
        named["toolType"] = part.tool_name.upper()
        called: Fields = {"toolCall": {**named, "args": call.arguments}}
        return [*_signed(called, own), *_signed({"toolResponse": {**named, "response": output}}, answered)]
    return []
