"""Text in pieces: whatever the cuts, what goes on is whole code points, and what cannot be one is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.agents.code_points import CodePoints


def halves(text: str) -> str:
    """The text as a program sees it that counts UTF-16 units: pairs of surrogates."""
    units = text.encode("utf-16-le")
    return "".join(chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2))


@given(st.text(), st.lists(st.integers(0, 20)))
def test_pieces_join_to_the_text_however_it_was_cut(text: str, cuts: list[int]) -> None:
    """And each piece that goes on is valid by itself."""
    pieces: list[str] = []
    rest = halves(text)
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    code_points = CodePoints()
    given_on = [code_points.feed(piece) for piece in [*pieces, rest]]
    code_points.end()
    assert "".join(given_on) == text
    for piece in given_on:
        piece.encode()


HIGH, LOW = "\ud83d", "\ude42"
"""The halves of 🙂."""


@pytest.mark.parametrize("text", [LOW, f"a{HIGH}b", HIGH + HIGH, LOW + HIGH])
def test_a_lone_surrogate_is_refused_and_not_taken(text: str) -> None:
    """What comes after it is judged as if it had not been there."""
    code_points = CodePoints()
    with pytest.raises(ValueError, match="lone surrogate"):
        code_points.feed(text)
    assert code_points.feed("a") == "a"
    code_points.end()


def test_a_half_that_is_not_completed_is_refused() -> None:
    """By the next piece, and by the end."""
    code_points = CodePoints()
    assert code_points.feed(f"a{HIGH}") == "a"
    assert code_points.feed("") == ""
    with pytest.raises(ValueError, match="inside a code point"):
        code_points.end()
    with pytest.raises(ValueError, match="lone surrogate"):
        code_points.feed("b")
    assert code_points.feed(LOW) == "🙂"
    code_points.end()


@pytest.mark.parametrize("thing", [b"bytes", None, 5])
def test_what_is_no_text_is_refused(thing: object) -> None:
    """Also bytes, which look like text to much of what is done with it."""
    with pytest.raises(TypeError, match="expected text"):
        CodePoints().feed(thing)  # type: ignore[arg-type]  # what an untyped agent does
