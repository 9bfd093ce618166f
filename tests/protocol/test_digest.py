"""Laws of digests; the forms themselves are held by the vectors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.digest import canonical, content_hash, message_digest
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.model import Message
from tests.protocol.strategies import integers, struct, values

if TYPE_CHECKING:
    import msgspec

    from midstream.protocol.values import Value


names = st.text(st.characters(max_codepoint=0x7F), max_size=4)
plain = st.recursive(
    st.none() | st.booleans() | integers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
)
"""Values without floats, whose keys are ASCII."""


@given(value=values)
def test_the_canonical_form_is_json_of_the_same_value(value: Value) -> None:
    """Another parser reads the same value from it, and the same form comes again."""
    again = json.loads(canonical(value), parse_int=float)  # as ECMAScript reads numbers
    assert again == value
    assert canonical(again) == canonical(value)


@given(value=values | plain)
def test_the_canonical_form_is_that_of_rfc_8785(value: Value) -> None:
    """Whichever encoder writes it."""
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "text", ["".join(map(chr, range(0x100))), "\u2028\u2029\ud7ff\ue000\uffff\U0001f600", '\\"/\x7f\x80']
)
def test_text_is_escaped_as_rfc_8785_says_alone_in_lists_and_as_a_key(text: str) -> None:
    """Control characters, quotes and backslashes, and nothing else."""
    written: list[Value] = [text, [text, 1], {"a": text}, {text: 1, "\U0001f600": 2, "\uffff": 3}]
    for value in written:
        assert canonical(value) == rfc8785.dumps(value)


@given(value=values)
def test_both_encodings_lead_to_the_same_hash(value: Value) -> None:
    """A prompt repeated in the other encoding is the same prompt."""
    for codec in (MSGPACK, JSON):
        sent = codec.decode_params("turn", codec.raw({"session_id": "s", "x": value}))[1]
        assert isinstance(sent, dict)
        assert content_hash(sent["x"]) == content_hash(value)


@given(message=struct(Message))
def test_a_message_has_one_digest_in_every_encoding(message: msgspec.Struct) -> None:
    """A replica that got it as msgpack proves itself to one that got it as JSON."""
    one = cast("Message", message)
    digest = message_digest(one)
    assert len(digest) == 16
    for codec in (MSGPACK, JSON):
        page = {"message": one, "epoch": "e", "version": 1}
        result = codec.decode_result("message", codec.raw(page))
        assert message_digest(structs.asdict(result)["message"]) == digest


@given(message=struct(Message))
def test_a_change_changes_the_digest(message: msgspec.Struct) -> None:
    """Also where only the revision differs."""
    one = cast("Message", message)
    other = structs.replace(one, revision=(one.revision + 1) % 1_000)
    assert message_digest(other) != message_digest(one)


@pytest.mark.parametrize("value", [2**53, float("nan"), "\ud800", {"\ud800": 1}, {1: 2}, b"x"])
def test_what_the_protocol_does_not_carry_has_no_canonical_form(value: Value) -> None:
    """It is refused, whatever the library's own error is."""
    with pytest.raises(InvalidRequest, match="no canonical form"):
        canonical(value)
