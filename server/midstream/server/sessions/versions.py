"""The one number of a session: who gives it, how far it may go, and which epoch it lies in (SPEC 2, 9).

Nothing above the stored ceiling is published, so after a crash the ceiling is above all that any
client has seen; times have a ceiling likewise. An epoch names one unbroken life of the live state; it
changes when versions could otherwise mean two things.
"""

from __future__ import annotations

from msgspec import structs

from midstream.server.storage.records import EpochEnd, LedgerRow

CEILING_BLOCK = 4_096
"""Versions by which the ceiling is raised: as large is the gap after a crash, and so many deltas cost one
write of their own."""

TIME_BLOCK_MS = 5_000
"""Milliseconds by which the ceiling of times is raised. A session that is found dirty goes on at that ceiling
at the earliest, so times may be that much ahead of the wall for a moment after a crash; and a session that
streams and commits nothing costs a write of its own in that time."""


class Versions:
    """The version counter of one loaded session.

    Commits go in three steps, so that a failed one changes nothing here: :meth:`next_row` says what
    to store, the caller stores it, :meth:`committed` takes it over.
    """

    __slots__ = (
        "_continues", "_generation", "_last", "_new_epoch", "_row", "_unrepaired_epoch",
        "durable", "last_time", "published",
    )  # fmt: skip

    def __init__(self, row: LedgerRow, *, generation: int, new_epoch: str) -> None:
        """Start from the stored row, under the owner ``generation``.

        A session found dirty starts at its ceiling. Unless the stored epoch is this process's own and
        ended cleanly, the first commit begins ``new_epoch`` and records how the old one ended.
        """
        self._row = row
        self._generation = generation
        self._new_epoch = new_epoch
        self._unrepaired_epoch: str | None = None
        self._continues = row.generation == generation and not row.dirty
        self.published = row.ceiling if row.dirty else row.version
        """The last version that was given and published."""
        self.durable = row.version
        """The last committed version."""
        self.last_time = max(row.last_time, row.time_ceiling) if row.dirty else row.last_time
        """The last server time given, ms since the epoch."""
        self._last = self.published
        """The highest version that may be published now."""

    @property
    def epoch(self) -> str:
        """The epoch that :attr:`published` lies in."""
        return self._unrepaired_epoch or self._row.epoch

    def stand_still(self, epoch: str) -> None:
        """Show what is stored under an epoch of its own, which no later one follows (SPEC 9).

        In the stored one, readers may have seen more than is stored at the very same version.
        """
        self._unrepaired_epoch = epoch
        self._continues = False

    def renew(self, new_epoch: str) -> None:
        """Begin another epoch with the next commit than one that failed would have begun."""
        self._new_epoch = new_epoch

    @property
    def begins_epoch(self) -> bool:
        """True until the first commit, where that commit begins a new epoch."""
        return not self._continues

    @property
    def cleared(self) -> int:
        """The version of the last clear; a cursor below it is void."""
        return self._row.cleared_version

    @property
    def dirty(self) -> bool:
        """Whether the store says that something may have been published above its version."""
        return self._row.dirty

    def room(self) -> int:
        """Return how many versions may be published without a commit, at the last time given."""
        return self._last - self.published if self.last_time <= self._row.time_ceiling else 0

    @property
    def is_low(self) -> bool:
        """Whether a ceiling is to be raised, so that it is not reached while something is published."""
        return self._last > self.published and (
            self._last - self.published < CEILING_BLOCK // 2
            or self._row.time_ceiling - self.last_time < TIME_BLOCK_MS // 2
        )

    def stamp(self, wall_ms: int) -> int:
        """Return the server time: never before the last one given."""
        if wall_ms > self.last_time:  # noqa: PLR1730 - a call of max costs more than all of this
            self.last_time = wall_ms
        return self.last_time

    def take(self) -> int:
        """Give the next version to something that is published and not stored. Needs :meth:`room`."""
        if self.published >= self._last or self.last_time > self._row.time_ceiling:
            message = "no version may be published above the stored ceiling"
            raise RuntimeError(message)
        self.published += 1
        return self.published

    def next_row(self, *, versions: int = 1, clear: bool = False) -> tuple[LedgerRow, EpochEnd | None]:
        """Return what a commit stores that takes the next ``versions`` (0 or 1), and the epoch it ends."""
        version = self.published + versions
        ended = None
        epoch = self._row.epoch
        if not self._continues:
            ended = EpochEnd(epoch=epoch, version=self.published, commit=self._row.version)
            epoch = self._new_epoch
        ceiling = self._row.ceiling
        if ceiling - version < CEILING_BLOCK // 2:
            ceiling = version + CEILING_BLOCK
        time_ceiling = self._row.time_ceiling
        if time_ceiling - self.last_time < TIME_BLOCK_MS // 2:
            time_ceiling = self.last_time + TIME_BLOCK_MS
        row = structs.replace(
            self._row,
            version=version if versions else self.durable,
            ceiling=ceiling,
            time_ceiling=time_ceiling,
            epoch=epoch,
            generation=self._generation,
            dirty=True,
            cleared_version=version if clear else self._row.cleared_version,
            last_time=self.last_time,
        )
        return row, ended

    def committed(self, row: LedgerRow, *, versions: int = 1) -> None:
        """Take over what was stored: the COMMIT returned."""
        self._row = row
        self._unrepaired_epoch = None
        self._continues = True
        self._last = row.ceiling
        if versions:
            self.published = row.version
            self.durable = row.version

    def clean_row(self) -> LedgerRow:
        """Return what a clean unload stores: the version as it stands, and no mark."""
        return structs.replace(
            self._row,
            version=self.published,
            ceiling=max(self._row.ceiling, self.published),
            dirty=False,
            last_time=self.last_time,
        )

    def cleaned(self, row: LedgerRow) -> None:
        """Take over a clean row that was stored."""
        self._row = row
        self._last = self.published
        self.durable = row.version
