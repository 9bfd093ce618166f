"""The language in which a prompt tells the simulated agent what to do.

A script is a line of acts. An act is a word of `TURN_ACTS`, or a step: words of `STEP_ACTS` joined by `+`.
A word may have a number behind a colon. `think:2+text:5 approve fail` is: a step with two deltas of reasoning
and five of text, then a tool that waits for an approval, then a failure.
"""

from random import Random
from typing import Final

STEP_ACTS: Final = {
    "text": 8,  # so many deltas of text
    "think": 8,  # so many deltas of reasoning
    "mix": 4,  # so many deltas, a tool, and as many again of the same text
    "both": 6,  # deltas of a text and a reasoning in turn
    "stream": 5,  # a tool whose input is streamed in so many pieces
    "tool": 3,  # a tool with so many preliminary outputs
    "big": 4,  # a tool with an output of so many KiB, which goes in chunks
    "slow": 10,  # so many long deltas of text, each after a long pause
    "many": 60,  # so many deltas without a pause
    "hold": 0,  # a tool that is left open for the turn's end
    "bad": 0,  # a tool whose input cannot be parsed
    "file": 0,
    "data": 0,
    "source": 0,
    "document": 0,
    "mark": 0,
}
"""What can be done in a step, and the greatest number that is drawn for it (0: it takes none)."""

TURN_ACTS: Final = {
    "approve": 30,  # a tool that waits for an approval, which expires after so many seconds (0: never)
    "ask": 30,  # a set of questions, likewise
    "two": 30,  # two approvals at the same time, likewise
    "action": 3,  # an action with so many updates
    "abandon": 4,  # a step that is undone after so many deltas, and tried again
    "nap": 5,  # so many seconds of work elsewhere
    "error": 0,
    "inputs": 0,  # reads the input that waits
    "internal": 0,
    "raise": 0,  # fails by an exception
    "fail": 0,  # fails by an error of its own
}
"""What can be done between steps, likewise."""

LAST: Final = ("raise", "fail")


def drawn(rng: Random, *, acts: int = 5) -> str:
    """Return a script of up to so many acts."""
    words = [_turn_act(rng) if rng.random() < 0.5 else _step(rng) for _ in range(rng.randint(1, acts))]
    if rng.random() < 0.15:
        words.append(rng.choice(LAST))
    return " ".join(words)


def parsed(word: str) -> tuple[str, int]:
    """Return the name and the number of a word.

    Raises:
        ValueError: It is no word of the language.
    """
    name, _, number = word.partition(":")
    if name not in STEP_ACTS and name not in TURN_ACTS:
        raise ValueError(f"{word!r} is no act; there are {', '.join((*STEP_ACTS, *TURN_ACTS))}")
    return name, int(number or 0)


def _step(rng: Random) -> str:
    return "+".join(
        _word(rng, name, STEP_ACTS[name]) for name in rng.choices(list(STEP_ACTS), k=rng.randint(1, 3))
    )


def _turn_act(rng: Random) -> str:
    name = rng.choice([name for name in TURN_ACTS if name not in LAST])
    return _word(rng, name, TURN_ACTS[name])


def _word(rng: Random, name: str, most: int) -> str:
    return f"{name}:{rng.randint(0, most)}" if most else name
