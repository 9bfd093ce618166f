"""Whether the peer is there, and whether it reads (SPEC 3.5). Pure: it is told the time."""

from __future__ import annotations

import math
from typing import Final

SAMPLES: Final = 4
"""Looks in a heartbeat at whether bytes moved: a stall is noticed at most a quarter of a heartbeat late."""


class Heartbeat:
    """Two clocks of one connection, both in heartbeats of so many seconds.

    *Silence*: after one heartbeat without a byte from the peer it is asked, after two it is lost.
    *Stall*: while bytes wait to be sent, one of them has to move in a heartbeat.
    """

    __slots__ = (
        "_asked_at", "_beat_at", "_heard_at", "_moved", "_moved_at", "_sampled_at", "_waiting", "seconds",
    )  # fmt: skip

    def __init__(self, seconds: float, now: float) -> None:
        """Begin, with something heard just now and nothing waiting."""
        self.seconds = seconds
        self._heard_at = now
        self._asked_at = -math.inf
        self._beat_at = now + seconds
        self._moved = 0
        self._moved_at = now
        self._sampled_at = now
        self._waiting = False

    def heard(self, now: float) -> None:
        """Note that bytes came from the peer."""
        self._heard_at = now

    def sampled(self, now: float, *, moved: int, waiting: bool) -> None:
        """Note how many bytes the kernel has taken so far in all, and whether more wait for it."""
        if moved > self._moved or not self._waiting:
            self._moved_at = now
        self._moved = max(self._moved, moved)
        self._sampled_at = now
        self._waiting = waiting

    def lost(self, now: float) -> bool:
        """Whether the peer was silent for two heartbeats."""
        return now >= self._heard_at + 2 * self.seconds

    def stalled(self, now: float) -> bool:
        """Whether bytes wait and none moved for a heartbeat."""
        return self._waiting and now >= self._moved_at + self.seconds

    def still_for(self, now: float) -> float:
        """Return for how many seconds bytes have waited and none has moved."""
        return now - self._moved_at if self._waiting else 0.0

    def ask(self, now: float) -> bool:
        """Whether the peer is to be asked now whether it is there; true once in a silence."""
        if now < self._heard_at + self.seconds or self._asked_at >= self._heard_at:
            return False
        self._asked_at = now
        return True

    def beat(self, now: float) -> bool:
        """Whether a heartbeat has passed since this was last true."""
        if now < self._beat_at:
            return False
        self._beat_at = now + self.seconds
        return True

    def next_deadline(self) -> float:
        """Return when to look again."""
        asked = self._asked_at >= self._heard_at
        silence = self._heard_at + (2 if asked else 1) * self.seconds
        if not self._waiting:
            return min(silence, self._beat_at)
        sample = min(self._sampled_at + self.seconds / SAMPLES, self._moved_at + self.seconds)
        return min(silence, self._beat_at, sample)
