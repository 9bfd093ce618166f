"""Laws of the codecs: what is encoded comes back, and what is bad is refused by name."""

from __future__ import annotations

import json
import math
import threading
from typing import TYPE_CHECKING, cast, get_args

import msgpack
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.protocol.calls import PARAMS, RESULTS, MessagesParams, TurnParams
from midstream.protocol.codec import CODECS, JSON, MSGPACK, Codec
from midstream.protocol.errors import (
    InvalidRequest,
    MalformedFrame,
    MidstreamError,
    UnknownFrame,
    UnknownMethod,
)
from midstream.protocol.frames import (
    Call,
    Chunk,
    ClientFrame,
    Delta,
    Hello,
    Ping,
    Result,
    ServerFrame,
    ShortDelta,
)
from midstream.protocol.values import is_unicode
from tests.protocol.strategies import struct, texts, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.values import Value

codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=lambda codec: codec.name)
RAW = {Call, Result, Chunk}
"""Frames that hold something encoded, or of another type in each encoding."""


def any_of(union: object) -> st.SearchStrategy[msgspec.Struct]:
    """Any frame of a union, but those with something encoded inside."""
    return st.one_of(*(struct(kind) for kind in get_args(union) if kind not in RAW))


def nested(levels: int) -> Value:
    """Lists in lists, so many levels deep."""
    value: Value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@codecs
@given(frame=any_of(ClientFrame))
def test_a_client_frame_comes_back_as_it_was(codec: Codec, frame: msgspec.Struct) -> None:
    """Whatever is encoded decodes to an equal frame."""
    assert codec.decode_client_frame(codec.encode(frame)) == frame


@codecs
@settings(max_examples=50)
@given(frame=any_of(ServerFrame))
def test_a_server_frame_comes_back_as_it_was(codec: Codec, frame: msgspec.Struct) -> None:
    """Whatever is encoded decodes to an equal frame."""
    assert codec.decode_server_frame(codec.encode(frame)) == frame


@codecs
@settings(max_examples=50)
@given(data=st.data(), method=st.sampled_from(sorted(PARAMS)), id=st.integers(0, 2**53 - 1))
def test_params_come_back_as_they_were_and_as_they_were_sent(
    codec: Codec, data: st.DataObject, method: str, id: int
) -> None:
    """A call decodes to the method's Struct, and to the plain value beside it."""
    params = data.draw(struct(PARAMS[method]))
    call = codec.decode_client_frame(codec.call(id, method, params))
    assert isinstance(call, Call)
    assert (call.id, call.method) == (id, method)
    decoded, as_sent = codec.decode_params(call.method, call.params)
    assert decoded == params
    assert as_sent == msgspec.to_builtins(params)


@codecs
@settings(max_examples=50)
@given(data=st.data(), method=st.sampled_from(sorted(RESULTS)))
def test_results_come_back_as_they_were(codec: Codec, data: st.DataObject, method: str) -> None:
    """A result decodes to the method's Struct."""
    result = data.draw(struct(RESULTS[method]))
    frame = codec.decode_server_frame(codec.encode(Result(7, codec.raw(result))))
    assert isinstance(frame, Result)
    assert codec.decode_result(method, frame.result) == result


@settings(max_examples=50)
@given(frame=any_of(ServerFrame))
def test_another_library_reads_the_same_msgpack(frame: msgspec.Struct) -> None:
    """What we write is what the msgpack package reads, and the other way round."""
    plain = msgpack.unpackb(MSGPACK.encode(frame))
    assert plain == json.loads(JSON.encode(frame))
    assert MSGPACK.decode_server_frame(msgpack.packb(plain)) == frame


@codecs
@settings(max_examples=50)
@given(frame=any_of(ServerFrame), extra=st.lists(values, max_size=2))
def test_more_elements_and_unknown_keys_are_ignored(
    codec: Codec, frame: msgspec.Struct, extra: list[Value]
) -> None:
    """A newer server may say more."""
    plain = msgspec.msgpack.decode(MSGPACK.encode(frame))
    more = [_with_unknown_key(item, frame) for item in plain] + extra
    assert codec.decode_server_frame(codec.encode(more)) == frame


def _with_unknown_key(item: Value, frame: msgspec.Struct) -> Value:
    """Add a key to each map of the protocol, but not to the maps of applications."""
    if not isinstance(item, dict) or type(frame).__name__ == "Signal":
        return item
    inner = {
        key: [_with_unknown_key(one, frame) for one in value]
        if key in {"messages", "parts", "turns"} and isinstance(value, list)
        else value
        for key, value in item.items()
    }
    return {**inner, "added later": {"by": ["a newer version"]}}


@codecs
@settings(max_examples=50)
@given(params=struct(MessagesParams), extra=st.dictionaries(texts.map(lambda key: f"x{key}"), values))
def test_unknown_params_are_ignored_but_kept_as_they_were_sent(
    codec: Codec, params: msgspec.Struct, extra: dict[str, Value]
) -> None:
    """A newer client may send more; the content hash sees it."""
    sent = {**extra, **msgspec.to_builtins(params)}
    assert codec.decode_params("messages", codec.raw(sent)) == (params, sent)


@given(data=st.binary(max_size=40))
@example(data=b"")
@example(data=b"\xc1")
def test_random_bytes_are_refused_with_a_documented_error_only(data: bytes) -> None:
    """No other exception leaves a decoder, whatever comes."""
    for codec in CODECS.values():
        _only_documented(codec.decode_client_frame, data)
        _only_documented(codec.decode_server_frame, data)
        _only_documented(codec.decode_params, "prompt", msgspec.Raw(data))
        _only_documented(codec.decode_result, "messages", msgspec.Raw(data))


@codecs
@settings(max_examples=50)
@given(data=st.data(), method=st.sampled_from(sorted(PARAMS)))
def test_damaged_calls_are_refused_with_a_documented_error_only(
    codec: Codec, data: st.DataObject, method: str
) -> None:
    """A good call with a byte changed, added or cut is decoded or refused, nothing else."""
    good = codec.call(1, method, data.draw(struct(PARAMS[method])))
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + data.draw(st.binary(max_size=2)) + good[at + data.draw(st.integers(0, 2)) :]

    def decode() -> None:
        call = codec.decode_client_frame(bad)
        if isinstance(call, Call):
            codec.decode_params(call.method, call.params)

    _only_documented(decode)


def _only_documented(decode: Callable[..., object], *given: object) -> None:
    try:
        decode(*given)
    except (MalformedFrame, UnknownFrame, UnknownMethod, InvalidRequest):
        return


@given(data=st.binary(max_size=30) | values.map(msgpack.packb))
@example(data=b"\x94\xa5chunk\x00\x00\x00")
def test_broken_framing_is_what_another_library_cannot_read_as_an_array_with_a_tag(data: bytes) -> None:
    """MalformedFrame, and so the end of the connection, for exactly those, and for chunks (SPEC 3.3)."""
    try:
        plain = msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
        tag = cast("list[object]", plain)[0] if isinstance(plain, list) and plain else None
        framed = isinstance(tag, str) and is_unicode(tag)
    except (ValueError, TypeError, msgpack.UnpackException):
        return  # keys that cannot be hashed, ids of reserved extensions: its own limits
    try:
        MSGPACK.decode_client_frame(data)
    except MalformedFrame:
        assert not framed or tag == "chunk"
    except MidstreamError:
        assert framed


@given(value=values)
def test_bytes_that_are_broken_json_are_broken_framing(value: Value) -> None:
    """A JSON text is a frame only as an array that begins with a string."""
    text = json.dumps(value).encode()
    framed = isinstance(value, list) and bool(value) and isinstance(value[0], str)
    with pytest.raises((MalformedFrame, UnknownFrame)) as raised:
        JSON.decode_client_frame(text)
    assert isinstance(raised.value, MalformedFrame) == (not framed)


@pytest.mark.parametrize("thread", [False, True], ids=["main thread", "other thread"])
@pytest.mark.parametrize(
    "params", [b"\x91" * 100_000 + b"\xc0", b"\x81\xa1a" * 100_000 + b"\xc0"], ids=["lists", "maps"]
)
def test_a_hundred_thousand_levels_are_an_error_and_no_crash(params: bytes, thread: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """On the main thread and on one of the usual size, in both encodings."""
    opened = b"[" if params[:1] == b"\x91" else b'{"a":'
    errors: list[InvalidRequest] = []

    def decode() -> None:
        for codec, head, deep in (
            (MSGPACK, b"\x94\xa4call\x07\xa6prompt", params),
            (JSON, b'["call",7,"prompt",', opened * 100_000),
        ):
            with pytest.raises(InvalidRequest, match="nested deeper") as raised:
                codec.decode_client_frame(head + deep)
            errors.append(raised.value)
            with pytest.raises(InvalidRequest, match="nested deeper"):
                codec.decode_params("prompt", msgspec.Raw(deep))

    if thread:
        worker = threading.Thread(target=decode)
        worker.start()
        worker.join()
    else:
        decode()
    assert [error.call_id for error in errors] == [7, 7]


@codecs
def test_sixty_four_levels_pass_and_one_more_is_refused_by_name(codec: Codec) -> None:
    """The frame is the first level, the params the second."""
    good = {"session_id": "s", "x": nested(62)}
    assert codec.decode_params("turn", codec.raw(good))[0] == TurnParams(session_id="s")
    with pytest.raises(InvalidRequest, match="limit `nesting`") as raised:
        codec.decode_params("turn", codec.raw({"session_id": "s", "x": nested(63)}))
    assert raised.value.field.startswith("x[0][0]")
    assert len(raised.value.field) <= 101
    with pytest.raises(InvalidRequest, match="limit `nesting`"):
        codec.decode_params("turn", codec.raw(good), nesting=63)


WRONG_ELEMENTS: list[tuple[list[Value], str, int | None]] = [
    (["call", -1, "turn", {}], "id", None),
    (["call", "1", "turn", {}], "id", None),
    (["call", True, "turn", {}], "id", None),
    (["call"], "id", None),
    (["call", 2**53, "turn", {}], "id", None),
    (["call", 7, None, {}], "method", 7),
    (["call", 7], "method", 7),
    (["call", 7, "turn"], "params", 7),
    (["ping", 1.5], "nonce", None),
    (["pong", 1], "time", None),
    (["hello", -1, None, {}], "version", None),
    (["hello", 1, 5, {}], "token", None),
    (["hello", 1, None, []], "client", None),
    (["hello", 1, None, {"a": 2**60}], "client.a", None),
    (["hello", 1, None, {"a": nested(63)}], "client.a" + "[0]" * 62, None),
]


@codecs
@pytest.mark.parametrize(("frame", "field", "call_id"), WRONG_ELEMENTS)
def test_a_wrong_element_is_named_and_the_call_is_answerable(
    codec: Codec, frame: list[Value], field: str, call_id: int | None
) -> None:
    """The error has the element's name, and the id of the call where it could be read."""
    with pytest.raises(InvalidRequest) as raised:
        codec.decode_client_frame(codec.encode(frame))
    assert raised.value.field.replace("…", "")[:20] == field[:20]
    assert raised.value.call_id == call_id


def test_a_bad_value_inside_params_leaves_the_call_answerable() -> None:
    """JSON's decoder stops at a lone surrogate; the id is found all the same."""
    with pytest.raises(InvalidRequest) as raised:
        JSON.decode_client_frame(rb'["call",9,"prompt",{"parts":[{"text":"\ud800"}]}]')
    assert (raised.value.call_id, raised.value.field) == (9, "parts[0].text")


def test_equal_keys_are_refused_however_the_rest_is_written() -> None:
    """Lengths can be made to match by other forms of numbers; the bytes cannot."""
    key = b"\xaasession_id\xa1s"
    # without the second "aa" four bytes are missing, and a float of 64 bits has four more than one of 32
    as_long = b"\x84" + key + 2 * b"\xa2aa\x01" + b"\xa1f\xca\x3f\x80\x00\x00"
    assert len(MSGPACK.encode(msgspec.msgpack.decode(as_long))) == len(as_long)
    for raw in (b"\x82" + key + key, as_long):
        with pytest.raises(InvalidRequest, match="twice"):
            MSGPACK.decode_params("turn", msgspec.Raw(raw))
    for text in (b'{"session_id":"s","session_id":"s"}', b'{"session_id":"s","x":[{"a" :1,"\\u0061":2}]}'):
        with pytest.raises(InvalidRequest, match="twice"):
            JSON.decode_params("turn", msgspec.Raw(text))


@given(value=values.filter(lambda value: isinstance(value, dict)))
def test_other_forms_of_the_same_value_are_accepted(value: dict[str, Value]) -> None:
    """White space, escapes and wide numbers are no duplicates."""
    sent = {"session_id": "s", **{f"x{key}": item for key, item in value.items()}}
    text = json.dumps(sent, indent=1).encode()
    assert JSON.decode_params("turn", msgspec.Raw(text))[1] == sent
    packed = msgpack.packb(sent, use_single_float=False)
    wide = b"\xdf" + len(sent).to_bytes(4, "big") + packed[1 if len(sent) < 16 else 3 :]
    assert MSGPACK.decode_params("turn", msgspec.Raw(wide))[1] == sent


@codecs
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"x": {"y": [0, math.nan]}}, "x.y[1]"),
        ({"x": math.inf}, "x"),
        ({"x": 2**53}, "x"),
        ({"x": [-(2**53)]}, "x[0]"),
        ({"x": "\ud800"}, "x"),
        ({"x": b"bytes"}, "x"),
        ({"x": {1: 2}}, "x"),
        ({"x": {"\udfff": 2}}, "x"),
        ({"x": nested(63)}, "x"),
    ],
)
def test_a_call_is_refused_before_it_is_sent_where_the_server_would_refuse_it(
    codec: Codec, params: Value, field: str
) -> None:
    """A client names the field without asking the server."""
    with pytest.raises(InvalidRequest) as raised:
        codec.call(1, "signal", params)
    assert raised.value.field.startswith(field)


@codecs
def test_an_unknown_method_is_named(codec: Codec) -> None:
    """For params and for results."""
    for decode in (codec.decode_params, codec.decode_result):
        with pytest.raises(UnknownMethod, match=r"sessions\.search"):
            decode("sessions.search", codec.raw({}))


@codecs
def test_a_tag_of_the_future_is_ignored_by_a_client_and_refused_by_a_server(codec: Codec) -> None:
    """Servers answer it, and keep the connection."""
    data = codec.encode(["future", {"deep": nested(70)}])
    assert codec.decode_server_frame(data) is None
    with pytest.raises(UnknownFrame) as raised:
        codec.decode_client_frame(data)
    assert raised.value.details == {"tag": "future"}


@codecs
def test_an_unreadable_chunk_is_broken_framing(codec: Codec) -> None:
    """What follows it could not be joined."""
    wrong_piece: Value = "text" if codec.binary else 5
    for frame in (
        ["chunk"],
        ["chunk", "n", True, "x"],
        ["chunk", 1, True, wrong_piece],
        ["chunk", 1, True, ""],
    ):
        with pytest.raises(MalformedFrame):
            codec.decode_client_frame(codec.encode(frame))
        with pytest.raises(MalformedFrame):
            codec.decode_server_frame(codec.encode(frame))


def test_a_result_that_is_no_result_is_named() -> None:
    """A client does not guess."""
    with pytest.raises(InvalidRequest) as raised:
        MSGPACK.decode_result("turn", MSGPACK.raw({"turn": None, "epoch": "e"}))
    assert raised.value.field == "version"


def test_a_delta_of_four_ascii_characters_is_short() -> None:
    """At most 32 bytes with the two of the WebSocket header, in any form; mostly less than half."""
    assert len(MSGPACK.encode(ShortDelta(7, 1_757, 20, "abcd"))) + 2 == 13
    assert len(MSGPACK.encode(ShortDelta(7, 1_000_000, 20, "abcd" * 10))) + 2 == 52
    delta = Delta(
        channel=12, version=100_000, elapsed=90_000, message_sequence=500, part_sequence=3, text="abcd"
    )
    assert len(MSGPACK.encode(delta)) + 2 <= 32
    everything_large = Delta(2**16, 2**32, 2**32 - 1, 2**16, 2**8, "abcd")
    assert len(MSGPACK.encode(everything_large)) + 2 <= 45


def test_json_may_come_as_bytes_with_white_space_around() -> None:
    """As a hand-written client sends it."""
    assert JSON.decode_client_frame(b' [ "ping" , 7 ] \n') == Ping(7)
    assert JSON.decode_client_frame(b'["hello",1,null,{}]') == Hello(1, None, {})
