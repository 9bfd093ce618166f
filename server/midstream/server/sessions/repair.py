"""A session that was loaded while the disk took no commit: shown as stored until it is repaired (SPEC 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from midstream.server.sessions import recovery
from midstream.server.storage.errors import CommitFailed

if TYPE_CHECKING:
    from midstream.server.sessions.services import Services
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.records import LoadedSession, StoredMessage

_AGAIN_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds until the next try, after each failure in a row. A call that would write tries at once."""


async def repair(state: LoadedState, services: Services) -> None:
    """End, or take up again, what an unclean end left open.

    Raises:
        CommitFailed: it is not stored, so nothing is changed.

    """
    state.versions.renew(services.ids.epoch())
    draft = await state.draft()
    recovery.recover(draft, turn_goes_on=services.agents.outlive_server)
    await state.commit(draft)


def as_stored(loaded: LoadedSession) -> LoadedSession:
    """Give what may still change the last revision, and time, that may have been published.

    Readers may have seen more of it than is stored, under greater ones than are stored.
    """
    ledger = loaded.ledger
    version = ledger.ceiling if ledger.dirty else ledger.version
    time = max(ledger.last_time, ledger.time_ceiling) if ledger.dirty else 0

    def stamped(message: StoredMessage) -> StoredMessage:
        head = structs.replace(message.head, revision=version, updated_at=max(message.head.updated_at, time))
        return structs.replace(message, head=head, part_revisions=[version for _ in message.part_revisions])

    return structs.replace(
        loaded,
        open_messages=[stamped(message) for message in loaded.open_messages],
        turn=None if loaded.turn is None else structs.replace(loaded.turn, revision=version),
    )


class Repair:
    """The repair that a loaded session still needs."""

    __slots__ = ("_at", "_failed", "_services", "_state")

    def __init__(self, state: LoadedState, services: Services) -> None:
        """Owe it to a state that was made of what :func:`as_stored` gave."""
        self._state = state
        self._services = services
        self._failed = 0
        self._at = services.clock.now() + _AGAIN_SECONDS[0]
        state.versions.stand_still(services.ids.epoch())

    async def now(self) -> None:
        """Do it. Raises CommitFailed where the disk still takes nothing."""
        await repair(self._state, self._services)

    async def in_time(self) -> bool:
        """Do it if a try is due; return whether it is done."""
        now = self._services.clock.now()
        if now < self._at:
            return False
        self._failed = min(self._failed + 1, len(_AGAIN_SECONDS) - 1)
        self._at = now + _AGAIN_SECONDS[self._failed]
        try:
            await self.now()
        except CommitFailed:
            return False
        return True

    def seconds(self) -> float:
        """Return how long it is until the next try."""
        return max(0.001, self._at - self._services.clock.now())
