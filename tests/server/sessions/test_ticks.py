"""Text that waits: joined by part, in the order in which the parts began to wait, and counted in bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.server.sessions.projection import Place
from midstream.server.sessions.ticks import WAITING_BYTES, GrowingPart, WaitingText, size_of

pieces = st.lists(st.tuples(st.integers(0, 3), st.text(min_size=1, max_size=5)))


def parts(count: int) -> list[GrowingPart]:
    """So many parts of one message."""
    return [GrowingPart(Place(1, number, f"p{number}")) for number in range(1, count + 1)]


def add(waiting: WaitingText, part: GrowingPart, text: str) -> None:
    """Let text wait."""
    waiting.add(part, text, size_of(text))


@given(pieces, st.integers(0, 5))
def test_each_part_gets_its_text_once_and_in_order(given_in: list[tuple[int, str]], taken: int) -> None:
    """Also where only some of it is taken, and more comes before the rest is."""
    waiting, of = WaitingText(), parts(4)
    for _ in range(2):
        expected: dict[int, str] = {}
        for number, text in given_in:
            add(waiting, of[number], text)
            expected[number] = expected.get(number, "") + text
        assert waiting.size == sum(size_of(text) for text in expected.values())
        assert [of[number].waits for number in expected] == [size_of(text) for text in expected.values()]
        out = [waiting.take() for _ in range(min(taken, len(expected)))]
        assert bool(waiting) == (len(out) < len(expected))
        while waiting:
            out.append(waiting.take())
        assert out == [(of[number], text, size_of(text)) for number, text in expected.items()]
        assert (bool(waiting), waiting.size, [part.waits for part in of]) == (False, 0, [0] * 4)


def test_producers_wait_from_a_number_of_bytes_on() -> None:
    """Not of characters, and no longer once it was taken or dropped."""
    waiting, (one, other) = WaitingText(), parts(2)
    add(waiting, one, "é" * (WAITING_BYTES // 2 - 1))
    assert not waiting.is_full
    add(waiting, other, "é")
    assert waiting.is_full
    waiting.take()
    assert not waiting.is_full
    add(waiting, one, "x" * WAITING_BYTES)
    waiting.clear()
    assert (waiting.is_full, bool(waiting), one.waits, other.text) == (False, False, 0, "")
