"""The one number of a session: it only grows, nothing passes the ceiling, and epochs say what was lost."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from midstream.server.sessions.versions import CEILING_BLOCK, TIME_BLOCK_MS, Versions
from midstream.server.storage.records import EpochEnd, LedgerRow
from tests.server.sessions.pure_session import NOW, new_ledger


def load(row: LedgerRow, *, generation: int = 1, new_epoch: str = "second") -> Versions:
    """Load a session from its row."""
    return Versions(row, generation=generation, new_epoch=new_epoch)


def commit(versions: Versions, *, clear: bool = False) -> tuple[LedgerRow, EpochEnd | None]:
    """Commit one version; give what was stored."""
    row, ended = versions.next_row(clear=clear)
    versions.committed(row)
    return row, ended


def test_the_first_commit_marks_the_session_and_raises_the_ceiling() -> None:
    """Before the first version is published, the store says that more may have been."""
    versions = load(new_ledger())
    row, ended = versions.next_row()
    assert (row.version, row.dirty, row.ceiling, row.epoch) == (2, True, 2 + CEILING_BLOCK, "first")
    assert ended is None
    versions.committed(row)
    assert (versions.published, versions.durable, versions.room()) == (2, 2, CEILING_BLOCK)


def test_a_load_has_no_room_before_its_first_commit() -> None:
    """Nothing may be published on the word of a ceiling that another load raised."""
    left = structs.replace(new_ledger(), version=7, ceiling=4_000)
    for row in (left, structs.replace(left, dirty=True), structs.replace(left, generation=3)):
        versions = load(row)
        assert versions.room() == 0
        with pytest.raises(RuntimeError, match="ceiling"):
            versions.take()
        assert versions.published == (4_000 if row.dirty else 7)


def test_a_clean_unload_and_reload_in_one_run_keeps_version_and_epoch() -> None:
    """The live state was never lost, so nobody's cursor is void."""
    versions = load(new_ledger())
    commit(versions)
    versions.take()
    row = versions.clean_row()
    versions.cleaned(row)
    assert (row.version, row.dirty, versions.durable, versions.room()) == (3, False, 3, 0)
    again = load(row, new_epoch="third")
    assert (again.published, again.epoch, again.begins_epoch) == (3, "first", False)
    stored, ended = commit(again)
    assert (stored.version, stored.epoch, ended) == (4, "first", None)


def test_a_dirty_session_starts_at_its_ceiling_in_a_new_epoch() -> None:
    """What was published and not stored lies between version and ceiling: all of it is behind us."""
    row = structs.replace(new_ledger(), version=50, ceiling=900, dirty=True)
    versions = load(row)
    assert (versions.published, versions.durable, versions.epoch) == (900, 50, "first")
    assert versions.begins_epoch
    stored, ended = commit(versions)
    assert ended == EpochEnd(epoch="first", version=900, commit=50)
    assert (stored.version, stored.epoch, versions.epoch) == (901, "second", "second")
    assert not versions.begins_epoch


def test_the_first_commit_of_another_process_begins_an_epoch() -> None:
    """The old one ends where it stood; until then the old one is named."""
    versions = load(structs.replace(new_ledger(), version=50), generation=2)
    assert (versions.published, versions.epoch) == (50, "first")
    stored, ended = commit(versions)
    assert ended == EpochEnd(epoch="first", version=50, commit=50)
    assert (stored.version, stored.epoch, stored.generation) == (51, "second", 2)
    assert commit(versions)[1] is None


def test_a_failed_commit_changes_nothing() -> None:
    """Asking for the row again gives the same row."""
    versions = load(new_ledger())
    commit(versions)
    before = (versions.published, versions.durable, versions.room(), versions.epoch)
    assert versions.next_row() == versions.next_row()
    assert (versions.published, versions.durable, versions.room(), versions.epoch) == before


def test_raising_the_ceiling_takes_no_version() -> None:
    """It is a write of its own: the committed version stays what it was."""
    versions = load(new_ledger())
    commit(versions)
    while versions.room():
        versions.take()
    with pytest.raises(RuntimeError, match="ceiling"):
        versions.take()
    row, ended = versions.next_row(versions=0)
    assert (row.version, row.ceiling, ended) == (2, versions.published + CEILING_BLOCK, None)
    versions.committed(row, versions=0)
    assert (versions.durable, versions.room()) == (2, CEILING_BLOCK)
    assert versions.take() == 3 + CEILING_BLOCK


def test_commits_raise_the_ceiling_before_it_is_needed() -> None:
    """Where commits come often enough, no delta ever waits for a write of its own."""
    versions = load(new_ledger())
    for _ in range(3 * CEILING_BLOCK):
        commit(versions)
        assert versions.room() >= CEILING_BLOCK // 2


def test_a_clear_notes_its_version() -> None:
    """A cursor below it is void; later commits keep it."""
    versions = load(new_ledger())
    commit(versions)
    assert versions.cleared == 0
    commit(versions, clear=True)
    commit(versions)
    assert (versions.cleared, versions.durable) == (3, 4)


def test_server_time_never_goes_back() -> None:
    """Neither within a load nor over a reload, whatever the wall clock does."""
    versions = load(structs.replace(new_ledger(), last_time=NOW))
    assert versions.stamp(NOW - 5_000) == NOW
    assert versions.stamp(NOW + 10) == NOW + 10
    assert versions.stamp(NOW + 3) == NOW + 10
    row, _ = commit(versions)
    assert row.last_time == NOW + 10
    assert load(structs.replace(row, dirty=False), generation=2).stamp(0) == NOW + 10


def test_after_a_crash_time_goes_on_at_its_ceiling_at_the_earliest() -> None:
    """Up to there it may have been shown; beyond it nothing was published."""
    versions = load(new_ledger())
    row, _ = commit(versions)
    ceiling = versions.last_time + TIME_BLOCK_MS
    assert (row.time_ceiling, versions.room()) == (ceiling, CEILING_BLOCK)
    versions.stamp(ceiling)
    assert versions.room() == CEILING_BLOCK
    versions.stamp(ceiling + 1)
    assert versions.room() == 0
    row, _ = versions.next_row(versions=0)
    versions.committed(row, versions=0)
    assert (row.time_ceiling, versions.room()) == (ceiling + 1 + TIME_BLOCK_MS, CEILING_BLOCK)
    assert load(row, generation=2).stamp(0) == row.time_ceiling
    assert load(row, generation=2).stamp(row.time_ceiling + 1) == row.time_ceiling + 1


class Lives(RuleBasedStateMachine):
    """One session over many loads, processes, failed commits and crashes.

    The oracle remembers all that was published, and under which epoch; and which epochs lost something that
    had been published.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stored = new_ledger()
        self.ends: dict[str, EpochEnd] = {}
        self.generation = 1
        self.loads = 0
        self.published = 1
        self.wall = self.shown = NOW
        self.seen = {"first": 1}
        self.committed = {"first": 1}
        self.unstored: set[str] = set()
        self.lost: set[str] = set()
        self.load()

    def load(self) -> None:
        """Load from what is stored."""
        self.loads += 1
        self.lost |= self.unstored
        self.unstored.clear()
        self.versions = load(self.stored, generation=self.generation, new_epoch=f"epoch {self.loads}")
        self.versions.stamp(self.wall)

    def store(self, row: LedgerRow, ended: EpochEnd | None) -> None:
        """Let a write reach the disk."""
        before, self.stored = self.stored, row
        if ended is not None:
            assert ended.epoch not in self.ends, "an epoch ends once"
            assert ended.commit == before.version, "its last commit is the last that was stored"
            self.ends[ended.epoch] = ended

    def publish(self) -> None:
        """Hold what was just published against the laws."""
        version, epoch = self.versions.published, self.versions.epoch
        assert version > self.published, "a version was given twice"
        assert version <= self.stored.ceiling, "published above the stored ceiling"
        assert self.stored.dirty, "published without a mark"
        assert epoch not in self.lost, "an epoch goes on that lost something"
        assert epoch not in self.ends, "an epoch goes on after its end"
        assert self.versions.last_time >= self.shown, "time went back"
        assert self.versions.last_time <= self.stored.time_ceiling, "a time above the stored ceiling"
        self.shown = self.versions.last_time
        self.published = version
        self.seen[epoch] = version

    def store_all(self) -> None:
        """Commit what was streamed, or a load recovered: a session is unloaded where nothing is open."""
        if self.versions.epoch in self.unstored | self.lost:
            self.commit(clear=False)

    @rule(ms=st.sampled_from([-600_000, -1, 1, 1_000, TIME_BLOCK_MS, 600_000]))
    def time_passes(self, ms: int) -> None:
        """The wall moves, also back; what is published next is stamped with it."""
        self.wall += ms
        self.versions.stamp(self.wall)

    @rule(clear=st.booleans())
    def commit(self, clear: bool) -> None:  # noqa: FBT001  # drawn by Hypothesis
        """A change is stored and published."""
        row, ended = self.versions.next_row(clear=clear)
        self.store(row, ended)
        self.versions.committed(row)
        self.publish()
        self.committed[self.versions.epoch] = row.version
        self.unstored.discard(self.versions.epoch)

    @precondition(lambda self: self.versions.room() > 0)
    @rule(count=st.sampled_from([1, 2, 3 * CEILING_BLOCK]))
    def stream(self, count: int) -> None:
        """Deltas are published, as far as there is room."""
        for _ in range(min(count, self.versions.room())):
            assert self.versions.take() == self.versions.published
            self.publish()
        self.unstored.add(self.versions.epoch)

    @rule()
    def raise_the_ceiling(self) -> None:
        """A write of its own makes room, in a load whose first write was a commit."""
        if self.versions.begins_epoch or self.versions.room():
            return
        row, ended = self.versions.next_row(versions=0)
        self.store(row, ended)
        self.versions.committed(row, versions=0)
        assert self.versions.room() > 0

    @rule(on_disk=st.booleans(), kind=st.sampled_from(["commit", "ceiling", "unload"]), dies=st.booleans())
    def fail(self, on_disk: bool, kind: str, dies: bool) -> None:  # noqa: FBT001 - a rule of the machine
        """A write fails, and yet may be on the disk; this process or the next one loads anew."""
        ended = None
        if kind == "unload":
            self.store_all()
            row = self.versions.clean_row()
        else:
            row, ended = self.versions.next_row(versions=1 if kind == "commit" else 0)
        if on_disk:
            self.store(row, ended)
        self.generation += dies
        self.load()

    @rule()
    def unload(self) -> None:
        """A clean unload stores where it stands."""
        self.store_all()
        if self.versions.dirty:
            row = self.versions.clean_row()
            self.store(row, None)
            self.versions.cleaned(row)
        self.load()

    @rule()
    def crash(self) -> None:
        """The process is killed, and another one loads."""
        self.generation += 1
        self.load()

    @rule()
    def restart(self) -> None:
        """The process ends in good order, and another one loads."""
        self.unload()
        self.generation += 1
        self.load()

    @invariant()
    def a_load_stands_at_or_above_all_that_was_published(self) -> None:
        """And says no more is stored than is."""
        assert self.versions.published >= self.published
        assert self.versions.durable <= self.versions.published
        assert self.versions.last_time >= self.shown

    @invariant()
    def an_ended_epoch_covers_what_was_published_in_it(self) -> None:
        """A cursor of it is never past its end, nor its durable past its last commit."""
        for epoch, end in self.ends.items():
            assert end.version >= self.seen.get(epoch, 0)
            assert end.commit >= self.committed.get(epoch, 0)
            assert end.commit <= end.version


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
