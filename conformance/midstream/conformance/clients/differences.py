"""What one version of a session's messages says that an earlier one did not, as message entries (SPEC 3.4).

Pure, and stupid on purpose: it compares whole messages, and knows nothing of how they came to differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.frames import MessageEntry
from midstream.protocol.model import Message, Part, ReasoningPart, TextPart, ToolPart

if TYPE_CHECKING:
    from collections.abc import Mapping


def entries(
    before: Mapping[int, Message],
    after: Mapping[int, Message],
    *,
    above: int,
    version: int,
    grown: bool = False,
    sync: bool = False,
) -> list[MessageEntry]:
    """Return an entry for each message that was changed above the version ``above``, ascending.

    ``grown``: text that was only appended is told by ``appends`` and ``ended``, as in a ``replay``. ``sync``:
    an entry names its revision where that is not ``version``.
    """
    told: list[MessageEntry] = []
    for number, message in sorted(after.items()):
        if message.revision <= above:
            continue
        held = before.get(number)
        entry = whole(message) if held is None else _changed(held, message, grown=grown)
        if sync and message.revision != version:
            entry = structs.replace(entry, revision=message.revision)
        told.append(entry)
    return told


def whole(message: Message) -> MessageEntry:
    """Return the entry of a message that is new."""
    return MessageEntry(
        message_id=message.message_id,
        sequence=message.sequence,
        session_id=message.session_id,
        turn_id=message.turn_id,
        role=message.role,
        visibility=message.visibility,
        created_at=message.created_at,
        updated_at=message.updated_at,
        origin=message.origin,
        state=message.state,
        part_count=len(message.parts),
        parts=list(message.parts),
    )


def _changed(before: Message, after: Message, *, grown: bool) -> MessageEntry:
    parts: list[Part] = []
    appends: list[tuple[int, str]] = []
    ended: list[int] = []
    for part in after.parts:
        held = before.parts[part.sequence - 1] if part.sequence <= len(before.parts) else None
        if held == part:
            continue
        text = None if held is None or not grown else _growth(held, part)
        if text is None:
            parts.append(part)
            continue
        if text:
            appends.append((part.sequence, text))
        if isinstance(part, (TextPart, ReasoningPart)) and part.state == "done":
            ended.append(part.sequence)
    return MessageEntry(
        sequence=after.sequence,
        updated_at=after.updated_at,
        state=after.state if after.state != before.state else UNSET,
        part_count=len(after.parts),
        parts=parts,
        appends=appends,
        ended=ended,
    )


def _growth(before: Part, after: Part) -> str | None:
    """Return the text that was appended, where nothing else changed but the end of a text; else None."""
    if isinstance(before, ToolPart) and isinstance(after, ToolPart):
        had = "" if before.input_text is UNSET else before.input_text
        has = "" if after.input_text is UNSET else after.input_text
        same = structs.replace(before, input_text=after.input_text) == after
    elif isinstance(before, (TextPart, ReasoningPart)) and type(before) is type(after):
        had, has = before.text, getattr(after, "text", "")
        same = structs.replace(before, text=has, state=getattr(after, "state", UNSET)) == after
    else:
        return None
    growing = getattr(before, "state", UNSET) in {"streaming", "input-streaming"}
    return has[len(had) :] if same and growing and has.startswith(had) else None
