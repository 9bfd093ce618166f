"""What happened in a schedule, in words, and what should not have."""

import asyncio

from tests.simulation.failures import LawBroken
from tests.simulation.simloop import START

SHOWN = 12
"""Complaints that a failure shows: the first ones tell, the rest follow from them."""


class Diary:
    """A list of lines with the virtual time, and the complaints among them.

    Attributes:
        lines: everything noted so far, in order.
        complaints: what contradicts a promise.
        traced: whether to note every frame too.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, traced: bool = False) -> None:
        self.lines: list[str] = []
        self.complaints: list[str] = []
        self.traced = traced
        self._loop = loop

    def note(self, who: str, what: str) -> None:
        """Write down that somebody did something."""
        self.lines.append(f"{self._loop.time() - START:11.5f} {who}: {what}")

    def complain(self, what: str) -> None:
        """Write down something that must not be; `judge` raises it."""
        self.complaints.append(what)
        self.note("COMPLAINT", what)

    def judge(self) -> None:
        """Raise what was complained of.

        Raises:
            LawBroken: There were complaints.
        """
        if self.complaints:
            more = len(self.complaints) - SHOWN
            shown = self.complaints[:SHOWN] + ([f"and {more} more"] if more > 0 else [])
            raise LawBroken("\n  ".join(["promises were broken:", *shown]))
