"""Ids that the server gives: a word for the kind, then enough chance that no two are the same."""

from __future__ import annotations

import base64
import re

from hypothesis import given
from hypothesis import strategies as st

from midstream.server.ids import RandomIds, encode


def test_an_id_says_what_it_is_of() -> None:
    """And is short, of lower-case letters and digits."""
    for kind in ("turn", "msg"):
        assert re.fullmatch(kind + "_[a-z2-7]{13}", RandomIds().new(kind))


def test_an_epoch_is_sixteen_hex_digits() -> None:
    """64 bits do not fit into an integer of the protocol."""
    assert re.fullmatch("[0-9a-f]{16}", RandomIds().epoch())


def test_no_two_are_the_same() -> None:
    """Of 64 bits, two of ten thousand are equal once in 3·10^11 runs."""
    ids = RandomIds()
    assert len({ids.new("part") for _ in range(10_000)}) == 10_000
    assert len({ids.epoch() for _ in range(10_000)}) == 10_000


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_no_bit_of_the_randomness_is_lost(one: int, other: int) -> None:
    """Different bits give different ids, which are those of RFC 4648."""
    assert (encode(one) == encode(other)) == (one == other)
    assert encode(one) == base64.b32encode(one.to_bytes(8, "big")).decode().rstrip("=").lower()
