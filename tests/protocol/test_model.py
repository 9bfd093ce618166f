"""Laws of the Structs: entities never change under their reader, and absent is not null."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol import calls, frames, model
from midstream.protocol.calls import PARAMS, RESULTS
from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.frames import ClientFrame, ServerFrame
from midstream.protocol.model import DataPart, Message, Part, ToolPart
from tests.protocol.strategies import struct


def structs_of(*modules: object) -> list[type[msgspec.Struct]]:
    """All Structs that these modules define."""
    found = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind in found if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct]


@pytest.mark.parametrize("kind", structs_of(model, frames, calls), ids=lambda kind: kind.__name__)
def test_every_struct_is_frozen(kind: type[msgspec.Struct]) -> None:
    """What was given out does not change."""
    assert kind.__struct_config__.frozen


@given(part=st.one_of(*(struct(kind) for kind in get_args(Part))))
def test_a_part_is_written_without_what_is_absent(part: msgspec.Struct) -> None:
    """Every key that is written has a value of its own."""
    plain = msgspec.to_builtins(part)
    for name in part.__struct_fields__:
        value = getattr(part, name)
        assert (name in plain) == (value is not msgspec.UNSET and value != _default(part, name))


def _default(part: msgspec.Struct, name: str) -> object:
    return {"part_id": "", "sequence": 0}.get(name, msgspec.UNSET) if name else None


def test_null_is_kept_where_it_is_a_value() -> None:
    """A tool that gave null is another than one that gave nothing."""
    nothing = ToolPart(tool_call_id="c", tool_name="t", state="completed")
    null = msgspec.structs.replace(nothing, output=None)
    for codec in (MSGPACK, JSON):
        assert codec.encode(nothing) != codec.encode(null)
        decoded = msgspec.convert(msgspec.to_builtins(null), ToolPart)
        assert decoded.output is None
    assert msgspec.to_builtins(DataPart(data_type="d", data=None))["data"] is None


def test_the_parts_of_a_message_keep_their_types() -> None:
    """The tag in ``type`` decides, in a list of any of them."""
    kinds = get_args(Part)
    assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds) == 11
    assert all(kind.__struct_config__.tag_field == "type" for kind in kinds)


def test_every_frame_is_an_array_with_its_tag_first() -> None:
    """One tag means one frame, in each direction."""
    for union in (ClientFrame, ServerFrame):
        kinds = get_args(union)
        assert all(kind.__struct_config__.array_like for kind in kinds)
        assert len({kind.__struct_config__.tag for kind in kinds}) == len(kinds)


def test_every_method_has_params_and_a_result() -> None:
    """Unknown keys are ignored in all of them."""
    assert set(PARAMS) == set(RESULTS)
    assert not any(
        kind.__struct_config__.forbid_unknown_fields for kind in (*PARAMS.values(), *RESULTS.values())
    )


@given(message=struct(Message))
def test_a_message_survives_a_result(message: msgspec.Struct) -> None:
    """Whole, in both encodings."""
    for codec in (MSGPACK, JSON):
        raw = codec.raw({"message": message, "epoch": "e", "version": 1})
        result = codec.decode_result("message", raw)
        assert msgspec.structs.asdict(result)["message"] == message


def test_a_role_that_does_not_exist_is_refused() -> None:
    """The words are part of the types."""
    raw = MSGPACK.raw(
        {"session_id": "s", "interaction_id": "i", "response": {"kind": "approval", "decision": "x"}}
    )
    with pytest.raises(InvalidRequest, match="decision"):
        MSGPACK.decode_params("respond", raw)
