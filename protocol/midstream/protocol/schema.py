"""JSON Schemas of the model, the frames and the calls, for other languages and editors (SPEC 2, 3, 7).

``python -m midstream.protocol.schema protocol/schema`` writes the files; a test holds them to be
current. They say what the types say: SPEC.md says the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TypeAlias, cast

import msgspec

from midstream.protocol.calls import PARAMS, RESULTS
from midstream.protocol.frames import ClientFrame, ShortDelta, TaggedFrame
from midstream.protocol.model import Message, Part, Session, Summary, Turn, UserPart
from midstream.protocol.values import Value

Schema: TypeAlias = dict[str, Value]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, Schema]:
    """Return each file's name and content.

    A type is referred to as ``model.json#/$defs/Message``; the params and the result of a method
    as ``params.json#/properties/prompt``.
    """
    model = {
        "Session": Session,
        "Message": Message,
        "Turn": Turn,
        "Summary": Summary,
        "Part": Part,
        "UserPart": UserPart,
    }
    sent = {"ClientFrame": ClientFrame, "TaggedFrame": TaggedFrame, "ShortDelta": ShortDelta}
    frames = _file("The frames, by sender", "$defs", sent)
    # msgspec has no union with a frame that has no tag
    either: Value = [{"$ref": f"#/$defs/{name}"} for name in ("TaggedFrame", "ShortDelta")]
    cast("Schema", frames["$defs"])["ServerFrame"] = {"anyOf": either}
    return {
        "model.json": _file("The canonical model", "$defs", model),
        "frames.json": frames,
        "params.json": _file("The params of each method", "properties", PARAMS),
        "results.json": _file("The result of each method", "properties", RESULTS),
    }


def _file(title: str, place: str, types: Mapping[str, object]) -> Schema:
    """Return a schema that has each type under its name in ``place``, and all that they need."""
    found, components = msgspec.json.schema_components(types.values(), ref_template="#/$defs/{name}")
    definitions = cast("Schema", dict(sorted(components.items())))
    named = cast("Schema", dict(zip(types, found, strict=True)))
    if place == "$defs":
        return {"$schema": DIALECT, "title": title, "$defs": named | definitions}
    return {"$schema": DIALECT, "title": title, place: named, "$defs": definitions}


def write(directory: str) -> None:
    """Write every file, replacing what is there."""
    for name, schema in schemas().items():
        text = msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"
        with open(f"{directory}/{name}", "wb") as file:  # noqa: PTH123 - the protocol imports no pathlib
            file.write(text)


if __name__ == "__main__":
    write(sys.argv[1])
