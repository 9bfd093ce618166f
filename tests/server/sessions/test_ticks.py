"""Text that waits: joined by part, in the order in which the parts began to wait, and counted in bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.server.sessions.ticks import WAITING_BYTES, WaitingText, size_of

pieces = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.text(min_size=1, max_size=5)))


def add(waiting: WaitingText, sequence: int, part: int, text: str) -> None:
    """Let text wait."""
    waiting.add(sequence, part, text, size_of(text))


@given(pieces, st.integers(0, 5))
def test_each_part_gets_its_text_once_and_in_order(given_in: list[tuple[int, int, str]], taken: int) -> None:
    """Also where only some of it is taken, and more comes before the rest is."""
    waiting = WaitingText()
    expected: dict[tuple[int, int], str] = {}
    for sequence, part, text in given_in:
        add(waiting, sequence, part, text)
        expected[sequence, part] = expected.get((sequence, part), "") + text
    assert waiting.size == sum(size_of(text) for text in expected.values())
    for (sequence, part), text in expected.items():
        assert waiting.bytes_of(sequence, part) == size_of(text)
    out = [waiting.take() for _ in range(min(taken, len(expected)))]
    assert bool(waiting) == (len(out) < len(expected))
    while waiting:
        out.append(waiting.take())
    assert out == [(*key, text, size_of(text)) for key, text in expected.items()]
    assert (bool(waiting), waiting.size, waiting.bytes_of(1, 1)) == (False, 0, 0)


def test_producers_wait_from_a_number_of_bytes_on() -> None:
    """Not of characters, and no longer once it was taken or dropped."""
    waiting = WaitingText()
    add(waiting, 1, 1, "é" * (WAITING_BYTES // 2 - 1))
    assert not waiting.is_full
    add(waiting, 1, 2, "é")
    assert waiting.is_full
    waiting.take()
    assert not waiting.is_full
    add(waiting, 1, 1, "x" * WAITING_BYTES)
    waiting.clear()
    assert (waiting.is_full, bool(waiting), waiting.bytes_of(1, 1)) == (False, False, 0)
