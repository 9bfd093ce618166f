"""What real providers said goes to every provider as legal input, and back to its own as it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageParam
from google.genai import types
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from midstream.adapters import feed
from midstream.adapters.compose import compose
from midstream.adapters.kept import KeptParts
from midstream.protocol.model import Message, TextPart
from tests.adapters.compose.histories import said
from tests.adapters.compose.real_types import exact
from tests.adapters.recordings import lines_of, recordings

FORMATS = ["anthropic", "google", "openai-chat", "openai-responses"]
CHAT = exact(list[ChatCompletionMessageParam])
ITEMS = exact(list[ResponseInputItemParam])
MESSAGES = exact(list[MessageParam])
GO = said("user", TextPart(text="Go."))
PATHS = [path for name in FORMATS for path in recordings(name)]


async def history_of(path: Path) -> list[Message]:
    """The conversation in which a recorded answer was given."""
    kept = KeptParts()
    await feed(kept.step(), lines_of(path))
    return [GO, said("agent", *kept.parts, sequence=2)]


@pytest.mark.parametrize("path", PATHS)
async def test_every_recorded_answer_is_legal_input_of_every_provider(path: Path) -> None:
    """As the library's types read it."""
    history = await history_of(path)
    chat: list[Any] = [dict(message) for message in compose(history, "openai-chat")]
    CHAT.validate_python(
        [{key: message[key] for key in message if not key.startswith("reasoning")} for message in chat]
    )
    ITEMS.validate_python(compose(history, "openai-responses"))
    MESSAGES.validate_python(compose(history, "anthropic"))
    for content in compose(history, "google"):
        types.Content.model_validate(dict(content))


@pytest.mark.parametrize("path", recordings("openai-responses"))
async def test_recorded_items_go_back_to_openai_as_they_came(path: Path) -> None:
    """Those that can: calls, reasoning with its encrypted content, hosted tools where that goes too."""
    came = [json.loads(line).get("item") for line in lines_of(path) if '"response.output_item.done"' in line]
    back: list[dict[str, Any]] = [dict(item) for item in compose(await history_of(path), "openai-responses")]
    sent = [
        item
        for item in back
        if item["type"] in {"reasoning", "function_call"} or item["type"].endswith("_call")
    ]
    known = {item.get("call_id") or item["id"]: item for item in came}
    for item in sent:
        original = known[item.get("call_id") or item["id"]]
        common = {name: original[name] for name in item if name in original}
        assert {name: item[name] for name in common} == common
    expected = [
        item["type"] for item in came if item["type"] in {"function_call", "shell_call", "apply_patch_call"}
    ]
    assert [
        item["type"] for item in sent if item["type"] in {"function_call", "shell_call", "apply_patch_call"}
    ] == expected
    whole = sum(item["type"] == "reasoning" and bool(item.get("encrypted_content")) for item in came)
    assert sum(item["type"] == "reasoning" for item in sent) == whole
