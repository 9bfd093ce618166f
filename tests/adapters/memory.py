"""Streams that are fed into a step in memory, and what the readers make of single events."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from midstream.adapters import Fed, Reader, feed
from midstream.adapters.kept import KeptParts

if TYPE_CHECKING:
    from midstream.adapters.events import Event


async def fed_in_memory(stream: object, reader: Reader | None = None) -> tuple[Fed, list[dict[str, object]]]:
    """Feed a stream; return what it came to, and its parts as plain values without their ids."""
    kept = KeptParts()
    async with kept.step() as step:
        fed = await feed(step, stream, reader=reader)
    return fed, plain_parts(kept)


def plain_parts(kept: KeptParts) -> list[dict[str, object]]:
    """The parts as plain values, without what ids and places say."""
    return [
        {
            name: value
            for name, value in cast("dict[str, object]", msgspec.to_builtins(part)).items()
            if name not in {"part_id", "sequence", "step_id"}
        }
        for part in kept.parts
    ]


def said(reader: Reader, *events: object) -> list[Event]:
    """What a reader says to these events and at the end."""
    return [word for event in events for word in reader.read(event)] + reader.end()


def words_of(parts: list[dict[str, object]], kind: str = "text") -> list[object]:
    """The texts of the parts of a type, in their order."""
    return [part["text"] for part in parts if part["type"] == kind]
