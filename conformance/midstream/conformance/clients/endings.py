"""What becomes of a message at its end, and of one that a crash cut off (SPEC 8.4, 9). Pure."""

from __future__ import annotations

from msgspec import structs

from midstream.protocol.model import ErrorPart, Message, Part, ReasoningPart, TextPart, ToolPart


def done(message: Message) -> Message:
    """Return the message as it is when its turn ended: it and its texts `done`, its open tools failed."""
    return structs.replace(message, state="done", parts=[_closed(part) for part in message.parts])


def _closed(part: Part, error: str = "turn_completed") -> Part:
    if isinstance(part, (TextPart, ReasoningPart)):
        return structs.replace(part, state="done")
    if isinstance(part, ToolPart) and part.state not in {"completed", "failed"}:
        return structs.replace(part, state="failed", error=error)
    return part


def interrupted(message: Message) -> Message:
    """Return the message as the repair after a crash leaves it (SPEC 9)."""
    number = len(message.parts) + 1
    note = ErrorPart(
        part_id=f"m{message.sequence}_p{number}_interrupted",
        sequence=number,
        scope="turn",
        code="runtime_interrupted",
        message="The server ended while this was written.",
        recoverable=True,
    )
    parts = [_closed(part, "runtime_interrupted") for part in message.parts]
    return structs.replace(message, state="done", parts=[*parts, note])
