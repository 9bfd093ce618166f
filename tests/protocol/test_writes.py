"""Laws of what remote agents send: a write is checked as params are, and what is refused can be answered."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, cast

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.protocol.agents import (
    AddPart,
    BeginStep,
    EndText,
    EndTurn,
    SetPhase,
    Write,
    check_write,
    is_stored,
)
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import InvalidRequest, MalformedFrame, UnknownFrame
from midstream.protocol.frames import Append, Hello, PartHandle, WriteFrame
from midstream.protocol.model import (
    ActionPart,
    DataPart,
    TextPart,
    ToolPart,
    ToolState,
    TurnFailure,
)
from tests.protocol.smallest_writes import OPS, made, smallest
from tests.protocol.strategies import struct, texts, values

if TYPE_CHECKING:
    from midstream.protocol.values import Value

codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=lambda codec: codec.name)
BAD: list[object] = [math.nan, math.inf, -math.inf, 2**53, -(2**53), 2**63, [[]] * 70_000]


def nested(levels: int) -> object:
    """Lists in lists, so many levels deep."""
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


def encoded(codec: Codec, value: object) -> bytes:
    """Encode also what no codec of the project would send. In JSON a number can be too large."""
    if codec.binary:
        return msgpack.packb(value)
    return re.sub(r"NaN|-?Infinity", "1e999", json.dumps(value)).encode()


def refusal(codec: Codec, frame: object) -> InvalidRequest:
    """Return how a frame of a client is refused."""
    with pytest.raises(InvalidRequest) as raised:
        codec.decode_client_frame(encoded(codec, frame))
    return raised.value


bad_values = st.recursive(
    st.sampled_from(BAD) | st.integers(63, 90).map(nested),
    lambda inner: st.tuples(values, inner).map(list) | st.fixed_dictionaries({"a": values, "b": inner}),
    max_leaves=3,
)
"""A value that the protocol does not carry, somewhere inside others that it does."""


@codecs
@settings(max_examples=60)
@given(bad=bad_values)
def test_a_write_is_checked_as_params_are(codec: Codec, bad: object) -> None:
    """Numbers, nesting, and how many values there are: the same problem, at the same path."""
    write = refusal(
        codec, ["write", 3, 7, {"op": "move_tool", "part_id": "p", "state": "ready", "input": bad}]
    )
    params = {"session_id": "s", "name": "n", "data": bad}
    with pytest.raises(InvalidRequest) as raised:
        codec.decode_params("signal", msgspec.Raw(encoded(codec, params)))
    path = raised.value.field
    assert write.field == path.replace("data", "input", 1) or "…" in path
    assert write.message.removeprefix(write.field) == raised.value.message.removeprefix(path)
    assert (write.write, write.call_id) == ((3, 7), None)


@codecs
@settings(max_examples=30)
@given(key=texts, write=st.sampled_from([{"op": "begin_step"}, {"op": "absorb_inputs"}]))
def test_a_key_that_stands_twice_is_refused_wherever_it_stands(
    codec: Codec, key: str, write: dict[str, str]
) -> None:
    """Two parsers could read it differently; also below keys that the server ignores."""
    whole = encoded(codec, ["write", 3, 7, {**write, "later": "here"}])
    bad = whole.replace(encoded(codec, "here"), _twice(codec, key))
    with pytest.raises(InvalidRequest, match="twice") as raised:
        codec.decode_client_frame(bad)
    assert raised.value.write == (3, 7)


def _twice(codec: Codec, key: str) -> bytes:
    one = encoded(codec, key)
    return b"\x82" + (one + b"\x01") * 2 if codec.binary else b"{" + one + b":1," + one + b":1}"


@codecs
@settings(max_examples=60)
@given(data=st.data(), op=st.sampled_from(sorted(OPS)))
def test_every_write_comes_back_as_it_was(codec: Codec, data: st.DataObject, op: str) -> None:
    """Whatever is written arrives."""
    write = data.draw(struct(OPS[op]))
    frame = WriteFrame(3, 7, cast("Write", write))
    assert codec.decode_client_frame(codec.encode(frame)) == frame


@codecs
@settings(max_examples=60)
@given(data=st.data(), op=st.sampled_from(sorted(OPS)))
def test_a_damaged_write_is_refused_with_a_documented_error_only(
    codec: Codec, data: st.DataObject, op: str
) -> None:
    """A byte changed, added or cut: it is decoded or refused, nothing else."""
    good = codec.encode(WriteFrame(3, 7, cast("Write", data.draw(struct(OPS[op])))))
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + data.draw(st.binary(max_size=2)) + good[at + data.draw(st.integers(0, 2)) :]
    try:
        frame = codec.decode_client_frame(bad)
    except (MalformedFrame, UnknownFrame, InvalidRequest):
        return
    assert isinstance(frame, msgspec.Struct)


@codecs
@pytest.mark.parametrize("op", sorted(OPS))
def test_a_write_may_have_keys_that_a_newer_worker_knows(codec: Codec, op: str) -> None:
    """They are ignored, if they are values of the protocol."""
    good = smallest(op)
    frame = codec.decode_client_frame(encoded(codec, ["write", 3, 7, {**good, "later": [1]}, "more"]))
    assert frame == codec.decode_client_frame(encoded(codec, ["write", 3, 7, good]))
    assert refusal(codec, ["write", 3, 7, {**good, "later": math.nan}]).field == "later"


WRONG: list[tuple[list[Value], str, tuple[int, int] | None]] = [
    (["write", 3, 7, {"op": "sing"}], "op", (3, 7)),
    (["write", 3, 7, {}], "op", (3, 7)),
    (["write", 3, 7, None], "write", (3, 7)),
    (["write", 3, 7], "write", (3, 7)),
    (["write", 3], "n", None),
    (["write", 3, -7, {"op": "begin_step"}], "n", None),
    (["write", 3, True, {"op": "begin_step"}], "n", None),
    (["write", -3, 7, {"op": "begin_step"}], "channel", None),
    (["write", 3, 7, {"op": "end_step", "step_id": ""}], "step_id", (3, 7)),
    (["write", 3, 7, {"op": "end_text", "part_id": "p" * 129}], "part_id", (3, 7)),
    (["write", 3, 7, {"op": "add_part", "part": {"type": "error", "part_id": "p"}}], "part.type", (3, 7)),
    (["write", 3, 7, {"op": "add_internal", "parts": []}], "parts", (3, 7)),
    (["write", 3, 7, {"op": "end_turn", "state": "stopped"}], "state", (3, 7)),
    (["a", 3, 7, 1], "text", (3, 7)),
    (["a", 3, 7, -1, "x"], "handle", (3, 7)),
    (["a", 3, 7, 1, None], "text", (3, 7)),
    (["a", 3, 2**53, 1, "x"], "n", None),
    (["part", 3, 1, ""], "part_id", None),
    (["part", 3, -1, "p"], "handle", None),
]


@codecs
@pytest.mark.parametrize(("frame", "field", "write"), WRONG)
def test_a_bad_write_is_named_and_its_number_can_be_answered(
    codec: Codec, frame: list[Value], field: str, write: tuple[int, int] | None
) -> None:
    """Else its number would stay open, and the worker would send it again for ever."""
    error = refusal(codec, frame)
    assert (error.field, error.write, error.call_id) == (field, write, None)


def test_text_with_half_of_a_code_point_is_refused_and_can_be_answered() -> None:
    """The decoder of JSON stops there; what stands before it is found all the same."""
    for text in (rb'["a",3,7,1,"\ud800"]', rb'["write",3,7,{"op":"end_text","part_id":"\udc00"}]'):
        with pytest.raises(InvalidRequest, match="Unicode") as raised:
            JSON.decode_client_frame(text)
        assert raised.value.write == (3, 7)


@pytest.mark.parametrize("frame", [Hello(1, None, {}), WriteFrame(3, 7, BeginStep())])
def test_what_stands_behind_a_frame_is_checked_too(frame: msgspec.Struct) -> None:
    """A newer peer may say more there; but nothing that no parser reads."""
    good = MSGPACK.encode(frame)
    more = bytes([good[0] + 1]) + good[1:]
    assert MSGPACK.decode_client_frame(more + b"\x01") == frame
    for bad in (b"\xa1\xff", b"\xcb\x7f\xf8" + bytes(6), b"\x91" * 100_000 + b"\xc0"):
        with pytest.raises(InvalidRequest):
            MSGPACK.decode_client_frame(more + bad)


def test_an_append_of_four_ascii_characters_is_short() -> None:
    """A worker's hot frame is no longer than a client's: at most 15 bytes in a long turn."""
    assert len(MSGPACK.encode(Append(1, 100, 1, "abcd"))) == 11
    assert len(MSGPACK.encode(Append(100, 60_000, 100, "abcd"))) == 13
    assert len(MSGPACK.encode(Append(100, 2**32 - 1, 100, "abcd"))) == 15
    assert len(MSGPACK.encode(PartHandle(1, 1, "p" * 36))) == 46


def test_what_is_committed_before_it_is_seen() -> None:
    """Every write is, but for the beginnings and ends of texts, and what only shows where the turn is."""
    live: list[Write] = [
        BeginStep(),
        SetPhase(phase="streaming"),
        EndText(part_id="p"),
        AddPart(part=TextPart(part_id="p", text="", state="streaming")),
        AddPart(part=DataPart(part_id="p", data_type="d", data=None)),
        AddPart(part=_tool("input-streaming")),
    ]
    assert [write for write in live if is_stored(write)] == []
    action = ActionPart(part_id="p", action_id="a", action_type="t", state="running", title="T")
    names = set(OPS) - {"begin_step", "set_phase", "end_text", "add_part"}
    stored: list[Write] = [AddPart(part=_tool("ready")), AddPart(part=action)]
    stored += [made(op) for op in sorted(names)]
    assert [write for write in stored if not is_stored(write)] == []


def _tool(state: ToolState) -> ToolPart:
    return ToolPart(part_id="p", tool_call_id="c", tool_name="t", state=state)


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (AddPart(part=TextPart(text="", state="streaming")), "part.part_id"),
        (AddPart(part=TextPart(part_id="p", sequence=2, text="", state="streaming")), "part.sequence"),
        (AddPart(part=_tool("running")), "part.state"),
        (EndTurn(state="failed"), "failure"),
        (EndTurn(state="completed", failure=TurnFailure(code="c", message="m")), "failure"),
    ],
)
def test_fields_that_do_not_belong_together_are_refused_by_name(write: Write, field: str) -> None:
    """Before the turn is looked at."""
    with pytest.raises(InvalidRequest) as raised:
        check_write(write)
    assert raised.value.field == field


def test_fields_that_belong_together_pass() -> None:
    """The usual ones."""
    good: list[Write] = [
        AddPart(part=_tool("ready")),
        AddPart(part=_tool("input-streaming")),
        AddPart(part=ActionPart(part_id="p", action_id="a", action_type="t", state="failed", title="T")),
        EndTurn(state="completed"),
        EndTurn(state="failed", failure=TurnFailure(code="c", message="m")),
    ]
    for write in good:
        check_write(write)
