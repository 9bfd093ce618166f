"""A call that was taken and is not answered yet. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midstream.server.connections.subscription import Subscription


class Pending:
    """What a connection knows of a call until its answer: whose lane it goes to, and what it begins."""

    __slots__ = ("at", "begins", "lane", "method", "repeatable", "subscription")

    def __init__(self, method: str, at: float) -> None:
        """Take a call at a time."""
        self.method = method
        self.at = at
        self.lane: str | None = None  # before the params were understood
        self.subscription: Subscription | None = None
        self.begins: Subscription | None = None
        self.repeatable = False
