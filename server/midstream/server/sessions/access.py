"""Who may see which sessions: the one place that says so for lists, and for those who watch them (SPEC 10.5).

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from midstream.protocol.model import Session
    from midstream.server.sessions.commands import Caller


class View:
    """What some callers may see. Those with the same view are sent the same bytes."""

    __slots__ = ()

    def shows(self, session: Session) -> bool:  # noqa: ARG002 - there are no rights yet
        """Say whether a session may be seen."""
        return True


_EVERYTHING: Final = View()


def view_of(caller: Caller) -> View:  # noqa: ARG001 - there are no rights yet
    """Return what a caller may see: in this version, everything."""
    return _EVERYTHING
