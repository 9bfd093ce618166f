"""Whether clients should be sent here: whether the database takes commits (SPEC 9)."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import asyncio
from typing import TYPE_CHECKING, Final

from midstream.server.storage.errors import OwnershipLost, StorageError

if TYPE_CHECKING:
    import apsw

    from midstream.server.clock import Clock
    from midstream.server.storage.database import Database

AGAIN_SECONDS: Final = 1.0
"""Between two commits that only try, at least: however often somebody asks, the disk hardly notices."""
STUCK_SECONDS: Final = 5.0
"""After which a commit that is not done counts as one that fails: the slowest of a healthy disk take less."""


class Readiness:
    """Answers from the last commit there was. To be asked makes a new one, for the next answer.

    So an answer never waits for the disk, and a server without traffic notices all the same that its disk
    is full, and that it is not any more: one question late.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        """Watch a database."""
        self._database = database
        self._clock = clock
        self._trying: asyncio.Task[None] | None = None
        self._tried_at = -AGAIN_SECONDS
        self._is_lost = False

    def asked(self) -> str:
        """Return the word, and try the disk for the next one who asks."""
        now = self._clock.now()
        if self._trying is None and now - self._tried_at >= AGAIN_SECONDS:
            self._tried_at = now
            self._trying = asyncio.create_task(self._try(), name="readiness")
        return self.word()

    def word(self) -> str:
        """Return in a word why the server is not ready; empty where it is.

        ``storage``: the last commit failed, or one is stuck. ``superseded``: another process owns it.
        """
        if self._is_lost:
            return "superseded"
        stuck = self._trying is not None and self._clock.now() - self._tried_at >= STUCK_SECONDS
        return "storage" if stuck or self._database.health.writes_fail else ""

    async def close(self) -> None:
        """Wait for the commit that is under way."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    async def _try(self) -> None:
        try:
            await self._database.write(_touch)
        except OwnershipLost:
            self._is_lost = True
        except StorageError:
            pass  # the database's health knows
        finally:
            self._trying = None


def _touch(connection: apsw.Connection) -> None:
    """Change a row and change it back: the page is stored, and so the disk is tried, but nothing is new.

    What is written as it is there already SQLite would not store.
    """
    connection.execute("UPDATE owner SET generation = generation + 1 WHERE id = 1")
    connection.execute("UPDATE owner SET generation = generation - 1 WHERE id = 1")
