"""What becomes of a case: it passed, failed, was skipped, or could not be carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

SHOWN = 2_000
"""Characters of a value that a report shows at most."""

T = TypeVar("T")


class Outcome(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"
    """The kit itself could not go on: the server was not there, or the kit has a fault."""


class Failed(Exception):
    """The implementation broke a rule; says what was expected, and what was seen in its place."""

    def __init__(self, what: str, *, expected: object = "", seen: object = "") -> None:
        """Give the rule's words, and both sides as values or texts."""
        super().__init__(what)
        self.what = what
        self.expected = shown(expected)
        self.seen = shown(seen)


class Skipped(Exception):
    """The case cannot be tried here; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One case, carried out. ``seconds`` is how long it took."""

    id: str
    title: str
    section: str
    guarantees: tuple[str, ...] = ()
    outcome: Outcome
    seconds: float = 0.0
    what: str = ""
    """Why, where it did not pass."""
    expected: str = ""
    seen: str = ""
    log: list[str] = field(default_factory=list[str])
    """What went over the wire last, for one that failed."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong: it passed, or was skipped for a reason."""
        return self.outcome in {Outcome.PASSED, Outcome.SKIPPED}


def shown(value: object) -> str:
    """Return a value as a report shows it."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


def expect(what: str, seen: T, expected: object) -> T:
    """Fail unless what was seen equals what was expected; return it."""
    if seen != expected:
        raise Failed(what, expected=expected, seen=seen)
    return seen


def require(holds: object, what: str, *, expected: object = "", seen: object = "") -> None:
    """Fail unless something holds."""
    if not holds:
        raise Failed(what, expected=expected, seen=seen)
