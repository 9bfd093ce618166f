"""Hosts: names for the programs of a simulation, so that one of them can be cut off or killed.

Whatever is started inside `with Host("alice"):` belongs to that host, and so does all that it starts in its
turn, because tasks and callbacks inherit their context: its tasks, timers, listeners and connections. Code
under test knows nothing of it.
"""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self


class Host:
    """One program on a machine of its own. A program that is started again after a crash is a new `Host`.

    Attributes:
        name: for messages; two hosts may share one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._tokens: list[Token[Host]] = []

    def __repr__(self) -> str:
        return f"<Host {self.name}>"

    def __enter__(self) -> Self:
        self._tokens.append(HOST.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        HOST.reset(self._tokens.pop())


OUTSIDE = Host("outside")
"""Where a scenario itself runs, unless it says otherwise."""

HOST: ContextVar[Host] = ContextVar("host", default=OUTSIDE)
"""The host that the running code belongs to."""
