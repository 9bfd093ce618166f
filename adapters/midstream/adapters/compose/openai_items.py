"""What a step is as items of the Responses API (pure).

Items are sent without their ids wherever the API lets that be: an id makes it look for what it stored,
and refuse a request whose items do not stand as they did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.compose import metadata
from midstream.adapters.compose.dialogue import AgentSaid, Call
from midstream.adapters.compose.identifiers import CallIds
from midstream.adapters.compose.openai_calls import PROVIDER, call_items
from midstream.adapters.compose.openai_hosted import hosted_items
from midstream.protocol.model import FilePart, ReasoningPart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.compose.dialogue import Spoken
    from midstream.protocol.values import Value

    Item = dict[str, Value]

ILLEGAL = r"[^a-zA-Z0-9_-]"
LONGEST_ID = 64


def agent_items(said: AgentSaid, ids: CallIds) -> list[Item]:
    """Return the items of a step, and behind them the outputs of the calls that the agent ran."""
    files = [part for part in said.parts if isinstance(part, FilePart)]
    items: list[Item] = []
    outputs: list[Item] = []
    for thoughts, parts in _led(said.parts):
        reasoning = _reasoning(thoughts)
        led: list[Item] = []
        if isinstance(parts[0], TextPart):
            led = _message([part for part in parts if isinstance(part, TextPart)])
        elif isinstance(parts[0], Call) and not parts[0].part.provider_executed:
            call, output = call_items(parts[0], ids.of(parts[0].part))
            led = [call]
            outputs.append(output)
        elif isinstance(parts[0], Call) and (reasoning or not thoughts):
            led = hosted_items(parts[0], files)
        if led:  # a reasoning may not stand without what it led to
            items += [*reasoning, *led]
    return [*items, *outputs]


def _led(parts: list[Spoken]) -> Iterator[tuple[list[ReasoningPart], list[Spoken]]]:
    """Return what each reasoning led to: a call, or the texts of one message; what led nowhere is dropped."""
    thoughts: list[ReasoningPart] = []
    texts: list[Spoken] = []
    for part in parts:
        if texts and not (isinstance(part, TextPart) and _item_id(part) == _item_id(texts[-1])):
            yield thoughts, texts
            thoughts, texts = [], []
        if isinstance(part, ReasoningPart):
            thoughts.append(part)
        elif isinstance(part, TextPart):
            texts.append(part)
        elif isinstance(part, Call):
            yield thoughts, [part]
            thoughts = []
    if texts:
        yield thoughts, texts


def _item_id(part: Spoken) -> str:
    given = part.provider_metadata if isinstance(part, (TextPart, ReasoningPart)) else {}
    return metadata.words(metadata.of(given, PROVIDER), "item_id")


def _message(parts: list[TextPart]) -> list[Item]:
    words = "".join(part.text for part in parts)
    if not words.strip():
        return []
    phase = metadata.words(metadata.of(parts[0].provider_metadata, PROVIDER), "phase")
    message: Item = {"type": "message", "role": "assistant", "content": words}
    return [{**message, "phase": phase} if phase in {"commentary", "final_answer"} else message]


def _reasoning(parts: list[ReasoningPart]) -> list[Item]:
    """Return the items of reasonings, each of whose summaries is a part; none where one cannot go back."""
    items: dict[str, Item] = {}
    for part in parts:
        own = metadata.of(part.provider_metadata, PROVIDER)
        item_id = _item_id(part)
        kind = metadata.words(own, "type") or "reasoning"
        item = items.setdefault(item_id, {"type": kind, "id": item_id})
        if kind == "reasoning":
            summary = item.setdefault("summary", [])
            if isinstance(summary, list) and part.text:
                summary.append({"type": "summary_text", "text": part.text})
        if encrypted := metadata.words(own, "encrypted_content"):
            item["encrypted_content"] = encrypted
    whole = all(
        item_id and item["type"] in {"compaction", "reasoning"} and "encrypted_content" in item
        for item_id, item in items.items()
    )
    return list(items.values()) if whole else []
