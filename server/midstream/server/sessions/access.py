"""Who may do what with which session: the one place that decides it (SPEC 10.5).

Pure. A host may decide it otherwise, by an :class:`Authorization` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from midstream.protocol.errors import Forbidden
from midstream.server.storage.records import EVERYTHING, Selection

if TYPE_CHECKING:
    from collections.abc import Hashable

Action: TypeAlias = Literal["read", "write", "create", "delete", "agent"]
"""What is done with a session; ``agent``: to run its turns, and to read it meanwhile."""
Scope: TypeAlias = Literal["read", "write", "internal", "agent", "admin"]
SCOPES: Final[tuple[Scope, ...]] = ("read", "write", "internal", "agent", "admin")
_INCLUDED: Final[dict[str, tuple[str, ...]]] = {"agent": ("read", "internal"), "admin": SCOPES}


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody is, as a token says."""

    subject: str
    scopes: frozenset[str]
    """With those that others include: see :func:`scopes_of`."""
    sessions: tuple[str, ...] | None = None
    """Ids, and beginnings of ids that end in ``*``; None where the token says nothing of sessions."""
    expires_at: int | None = None
    """ms since the epoch; None for never."""
    owns: bool = True
    """Whether what this subject makes belongs to it. Not so where everybody is the same one."""

    @property
    def owner(self) -> str | None:
        """To whom a session that this one makes belongs."""
        return self.subject if self.owns else None


LOCAL: Final = Identity(subject="local", scopes=frozenset(SCOPES), owns=False)
"""Everybody, where there are no tokens."""
NOBODY: Final = Identity(subject="", scopes=frozenset(), sessions=(), owns=False)


class SessionRef(msgspec.Struct, frozen=True):
    """A session that somebody wants to do something with.

    For ``create`` it is the id that the caller chose, or None where the server is to choose it: whether
    there is such a session is not said, and must not matter.
    """

    session_id: str | None
    owner: str | None = None
    """The subject that made it, if it had a token."""


class Authorization:
    """Decides who may do what; this one lets everybody do everything. A host may inherit from it.

    It is asked in the event loop's thread, often: it must answer at once. Where its answers change while
    somebody is connected, call :meth:`midstream.server.RunningServer.weigh_rights`.
    """

    def authorize(self, identity: Identity, action: Action, session: SessionRef) -> bool:  # noqa: ARG002 - for others
        """Say whether somebody may do this. What it may not ``read`` it is told nothing of."""
        return True

    def selection(self, identity: Identity) -> Selection:  # noqa: ARG002 - for others
        """Narrow a list to what somebody may ``read``, or more, so that the rest need not be looked at."""
        return EVERYTHING

    def group(self, identity: Identity) -> Hashable:
        """Return a value that is equal for those who may ``read`` the same sessions."""
        return identity


class Everybody(Authorization):
    """Everybody may do everything: there are no tokens."""

    def group(self, identity: Identity) -> Hashable:  # noqa: ARG002 - all are alike
        """Return the same for all."""
        return None


class ByToken(Authorization):
    """The sessions that the token covers, else those that the subject made."""

    def authorize(self, identity: Identity, action: Action, session: SessionRef) -> bool:
        """Say whether somebody may do this."""
        if "admin" in identity.scopes:
            return True
        if action == "create":
            # who could choose any id would learn which are taken; one that nobody chose is covered by no list
            return (identity.sessions is None) is (session.session_id is None) and covers(identity, session)
        if identity.sessions is None:
            return action == "agent" or (session.owner is not None and session.owner == identity.owner)
        return covers(identity, session)

    def selection(self, identity: Identity) -> Selection:
        """Return exactly what somebody may read."""
        if "admin" in identity.scopes:
            return EVERYTHING
        if identity.sessions is None:
            return Selection(owner=identity.owner)
        prefixes = tuple(one[:-1] for one in identity.sessions if one.endswith("*"))
        if "" in prefixes:
            return EVERYTHING
        return Selection(
            ids=tuple(one for one in identity.sessions if not one.endswith("*")), prefixes=prefixes
        )

    def group(self, identity: Identity) -> Hashable:
        """Return the selection: it is exact."""
        return self.selection(identity)


def covers(identity: Identity, session: SessionRef) -> bool:
    """Say whether a token that names sessions covers this one, or it names none."""
    if identity.sessions is None:
        return True
    session_id = session.session_id
    return session_id is not None and any(
        session_id.startswith(one[:-1]) if one.endswith("*") else session_id == one
        for one in identity.sessions
    )


def scopes_of(named: frozenset[str]) -> frozenset[str]:
    """Return the scopes that are known, with those that they include."""
    known = [scope for scope in SCOPES if scope in named]
    return frozenset(known).union(*(_INCLUDED.get(scope, ()) for scope in known))


def in_order(scopes: frozenset[str]) -> list[str]:
    """Return scopes as ``welcome`` lists them."""
    return [scope for scope in SCOPES if scope in scopes]


def check_create(authorization: Authorization, identity: Identity, asked_id: str | None, field: str) -> None:
    """Check that somebody may make a session with this id, or with one of the server's choice.

    Raises:
        Forbidden: the same, whether there is or was such a session or not.

    """
    if authorization.authorize(identity, "create", SessionRef(asked_id)):
        return
    if asked_id is None:
        raise Forbidden.because(
            field, "name one that your token covers: it is good for certain sessions only"
        )
    raise Forbidden.because(
        field, "your token does not cover this id. Name one that it covers, or leave it out if it names none"
    )
