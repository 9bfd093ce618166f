"""The group commit itself: several jobs, one transaction, one outcome each (SPEC 9).

Pure in the sense that matters here: a connection and jobs in, outcomes out, no thread and no event loop.
"""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import traceback
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import apsw

from midstream.server.storage.errors import CommitFailed, OwnershipLost, ReadFailed, StorageError
from midstream.server.storage.owner import check_generation

Work = Callable[[apsw.Connection], object]
"""One job: uses the connection, and gives what its caller awaits. It must not end the transaction."""

SYSTEM_ERRORS = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.NoMemError,
    apsw.NotADBError,
)
"""Errors that say nothing about a job's statements, only about disk, file, memory or locks."""


@dataclass(frozen=True, slots=True)
class Done:
    """The job did its work, and it counts."""

    value: object


@dataclass(frozen=True, slots=True)
class Failed:
    """The job's work does not count; its caller gets the error."""

    error: BaseException


Outcome = Done | Failed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Alike(Generic[T]):
    """A job that its batch does together with others of its kind, where they stand next to each other.

    So the statements are few, and with them the times that the writer leaves and enters the interpreter.
    It gives None.
    """

    key: Hashable
    """What it changes: two jobs with one key are not done together, but one after the other."""
    item: T
    do: Callable[[apsw.Connection, Sequence[T]], None]
    """Does what these items say, all or nothing."""

    def __call__(self, connection: apsw.Connection) -> None:
        """Do it alone."""
        self.do(connection, [self.item])


def run_batch(connection: apsw.Connection, generation: int, jobs: Sequence[Work]) -> list[Outcome]:
    """Run the jobs in order in one transaction, and commit.

    Each is in a savepoint of its own, or in one with others that are :class:`Alike`. A job that raises is
    rolled back alone. When the transaction as a whole fails (BEGIN, COMMIT, a disk error that made SQLite
    roll back) every job has failed with `CommitFailed`; when the file belongs to another generation, with
    `OwnershipLost`. Nothing is raised but an interrupt, and no transaction is left open where SQLite still
    lets us end it.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
        check_generation(connection, generation)
        outcomes: list[Outcome] = []
        for group in _groups(jobs):
            outcomes += _run_group(connection, group)
        connection.execute("COMMIT")
    except OwnershipLost as lost:
        _roll_back(connection)
        return [Failed(lost.again()) for _ in jobs]
    except Exception as cause:  # noqa: BLE001 - whatever broke the transaction, every caller must hear of it
        _roll_back(connection)
        return [Failed(CommitFailed(cause)) for _ in jobs]
    except BaseException:
        _roll_back(connection)
        raise
    return outcomes


def run_read(connection: apsw.Connection, job: Work) -> Outcome:
    """Run a reading job on one consistent snapshot: all its statements see the same state."""
    try:
        connection.execute("BEGIN")
    except apsw.Error as cause:
        return Failed(ReadFailed(cause))
    outcome = attempt(job, connection, ReadFailed)
    _roll_back(connection)
    return outcome


def attempt(job: Work, connection: apsw.Connection, failure: type[CommitFailed | ReadFailed]) -> Outcome:
    """Call the job; a system error becomes a `failure`, any other error goes to the caller as it is."""
    try:
        return Done(job(connection))
    except BaseException as error:  # noqa: BLE001 - the error belongs to the caller; whoever runs jobs goes on
        # The error holds the job's frames, and these a half-read cursor, which would keep its statement open.
        traceback.clear_frames(error.__traceback__)
        match error:
            case apsw.Error() if isinstance(error, SYSTEM_ERRORS):
                return Failed(failure(error))
            case StopIteration():
                # A future does not take this one, and in a coroutine it would become a RuntimeError as well.
                plain = RuntimeError("A job raised StopIteration; give a default to next().")
                plain.__cause__ = error
                return Failed(plain)
            case _:
                return Failed(error)


def _groups(jobs: Sequence[Work]) -> Iterator[list[Work]]:
    """Split the jobs into runs that can be done together, most often of one."""
    group: list[Work] = []
    keys: set[Hashable] = set()
    do: object = None
    for job in jobs:
        alike = _alike(job)
        if group and (alike is None or alike.do is not do or alike.key in keys):
            yield group
            group, keys = [], set()
        group.append(job)
        do = None if alike is None else alike.do
        if alike is not None:
            keys.add(alike.key)
    if group:
        yield group


def _alike(job: Work) -> Alike[object] | None:
    return cast("Alike[object]", job) if isinstance(job, Alike) else None


def _run_group(connection: apsw.Connection, group: list[Work]) -> list[Outcome]:
    first = _alike(group[0])
    if first is not None and len(group) > 1:
        items = [alike.item for job in group if (alike := _alike(job))]
        if isinstance(_run_job(connection, lambda there: first.do(there, items)), Done):
            return [Done(None) for _ in group]
        # one of them is to blame: each alone, so that the others are done all the same
    return [_run_job(connection, job) for job in group]


def _run_job(connection: apsw.Connection, job: Work) -> Outcome:
    connection.execute("SAVEPOINT job")
    outcome = attempt(job, connection, CommitFailed)
    if not connection.in_transaction:
        # SQLite gave up the whole transaction (disk full, I/O error); the job may have hidden the error.
        raise _reason(outcome)
    if isinstance(outcome, Failed):
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")
    return outcome


def _reason(outcome: Outcome) -> Exception:
    match outcome:
        case Failed(CommitFailed(cause=Exception() as cause)):
            return cause
        case _:
            return StorageError("a job ended the transaction of its batch, or went on after a disk error")


def _roll_back(connection: apsw.Connection) -> None:
    with suppress(apsw.Error):  # whoever owns the connection replaces one that is not idle
        if connection.in_transaction:
            connection.execute("ROLLBACK")
