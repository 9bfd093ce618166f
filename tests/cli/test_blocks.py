"""Markdown is cut only where what follows cannot change what was drawn."""

import pytest

from midstream.cli.blocks import complete_blocks


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", ""),
        ("one line", ""),
        ("one\ntwo\n", ""),
        ("one\n\n", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\n \t\ntwo\n\nthree", "one\n \t\ntwo\n\n"),
        ("- a\n\n  still a", ""),
        ("- a\n\n  still a\n\nafter", "- a\n\n  still a\n\n"),
        ("```\ncode\n\nmore", ""),
        ("```\ncode\n\nmore\n```\n\nafter", "```\ncode\n\nmore\n```\n\n"),
        ("before\n\n~~~ python\na\n\nb", "before\n\n"),
    ],
)
def test_a_block_is_finished_when_another_begins(text: str, finished: str) -> None:
    """A list item that goes on and a fence that is open are not cut."""
    assert complete_blocks(text) == (finished, text[len(finished) :])


def test_however_a_text_comes_the_same_blocks_are_finished() -> None:
    """Letter by letter or at once: the cuts are the same, and nothing is lost."""
    text = "# A\n\nb *c*\n\n- d\n\n  e\n- f\n\n```\ng\n\nh\n```\n\ni\n\n\n\nj"
    drawn: list[str] = []
    rest = ""
    for letter in text:
        finished, rest = complete_blocks(rest + letter)
        if finished:
            drawn.append(finished)
    assert "".join(drawn) == complete_blocks(text)[0]
    assert "".join(drawn) + rest == text
