"""What is kept until it is on disk: every write under its number, as it was."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.agents import BeginStep, EndText, Write
from midstream.worker.ledger import RUN_PIECES, Content, Ledger, Piece

PARTS = st.sampled_from(["a", "b"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
WRITES: st.SearchStrategy[Write] = st.one_of(st.just(BeginStep()), st.builds(EndText, part_id=PARTS))
CONTENTS: st.SearchStrategy[Content] = st.one_of(WRITES, st.builds(Piece, PARTS, TEXTS))
RUNS = st.tuples(CONTENTS, st.integers(1, 2 * RUN_PIECES + 3)).map(lambda pair: [pair[0]] * pair[1])
STEPS = st.lists(st.one_of(CONTENTS.map(lambda one: [one]), RUNS), max_size=12)


def add(ledger: Ledger, content: Content) -> int:
    """Add what one number stands for."""
    if isinstance(content, Piece):
        return ledger.add_text(content.part_id, content.text)
    return ledger.add_write(content, 10)


@given(st.integers(0, 9), STEPS, st.data())
def test_each_number_stands_for_what_it_was_given_for_until_it_is_on_disk(
    before: int, steps: list[list[Content]], data: st.DataObject
) -> None:
    """The oracle is a list."""
    ledger, oracle = Ledger(before), list[Content]()
    for step in steps:
        for content in step:
            oracle.append(content)
            assert add(ledger, content) == before + len(oracle)
        durable = data.draw(st.integers(0, before + len(oracle) + 2))
        ledger.stored(durable)
        first = data.draw(st.integers(ledger.durable + 1, ledger.last + 1))
        for n in range(first, ledger.last + 1):
            assert ledger.content(n) == oracle[n - before - 1]
        assert ledger.size_from(first) <= ledger.size
    assert ledger.last == before + len(oracle)
    ledger.stored(ledger.last)
    assert (ledger.size, ledger.size_from(1)) == (0, 0)


@pytest.mark.parametrize("n", [0, 2, 4])
def test_what_is_on_disk_or_was_never_written_is_not_there(n: int) -> None:
    """A number below or above what is kept is an error, and no other write."""
    ledger = Ledger()
    for text in ("one", "two", "three"):
        ledger.add_text("a", text)
    ledger.stored(2)
    with pytest.raises(KeyError):
        ledger.content(n)
    assert ledger.content(3) == Piece("a", "three")


def test_a_hundred_thousand_small_pieces_take_about_as_much_memory_as_is_counted() -> None:
    """What is kept is counted in bytes, and the count is honest within a factor of two."""
    tracemalloc.start()
    ledger = Ledger()
    for number in range(100_000):
        ledger.add_text("a", f"{number:05} ")
    measured, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured < 2 * ledger.size
    assert ledger.size < 2_000_000
