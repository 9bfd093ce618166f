"""Commits of many sessions together: the same rows as one by one, in few statements, each its own fault."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest
from msgspec import structs

from midstream.protocol.model import InteractionPart, InteractionRequest
from midstream.server.storage import rows, store
from midstream.server.storage.batch import Done, Failed, Work, run_batch
from midstream.server.storage.commits import commit_of
from midstream.server.storage.owner import claim
from midstream.server.storage.records import AttachmentRow, EpochEnd, SessionWrite
from midstream.server.storage.schema import migrate
from tests.server.storage.books import (
    NOW,
    create,
    new_input,
    new_ledger,
    new_session,
    new_summary,
    running_turn,
    text_message,
    write_of,
)

GENERATION = 1


def owned(sessions: int) -> apsw.Connection:
    """A database that somebody owns, with sessions 1 to ``sessions``."""
    connection = apsw.Connection(":memory:")
    assert claim(connection, migrate) == GENERATION
    for number in range(1, sessions + 1):
        assert create(connection, f"s{number}") == number
    return connection


def dump(connection: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables."""
    names = [
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    return {
        name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)  # noqa: S608 - its own tables
        for name in names
    }


def first_commit(number: int) -> SessionWrite:
    """A commit with something of every kind, different in each session."""
    session = structs.replace(
        new_session(f"s{number}"), message_count=2, title=f"Number {number}", revision=3
    )
    commit = write_of(
        number,
        [text_message(1, f"first of {number}"), text_message(2, "second", internal=number % 2 == 0)],
        ledger=new_ledger(number + 10),
        session=session if number % 3 else None,
    )
    return structs.replace(
        commit,
        epoch_end=EpochEnd(epoch="zeroth", version=number, commit=1) if number % 4 else None,
        interactions=[(f"i{number}", 1, 1)],
        turns=[running_turn(f"turn{number}"), running_turn("other")],
        inputs=[new_input(f"in{number}", 5)],
        attachment=AttachmentRow(turn_id="turn", generation=1, n=number, worker="w")
        if number % 5 == 0
        else None,
        summaries=[new_summary(1, 2)] if number % 2 else [],
    )


def second_commit(number: int) -> SessionWrite:
    """A commit that changes what the first one made, and drops one part."""
    changed = structs.replace(text_message(1, "changed", revision=20), updated_at=NOW + 5)
    commit = write_of(number, [changed], ledger=new_ledger(20))
    emptied = structs.replace(commit.messages[0], part_count=0)
    return structs.replace(
        commit,
        messages=[emptied] if number % 2 else commit.messages,
        parts=[] if number % 2 else commit.parts,
        turns=[running_turn(f"turn{number}", revision=20)],
        inputs=[new_input(f"in{number}", 5, "started")],
        deleted=number % 7 == 0,
    )


@pytest.mark.parametrize("sessions", [1, 2, 7, 128, 150])
def test_commits_together_store_what_they_store_one_by_one(sessions: int) -> None:
    """Whatever is in them, new or changed, and however many there are."""
    together, apart = owned(sessions), owned(sessions)
    for commit in (first_commit, second_commit):
        writes = [commit(number) for number in range(1, sessions + 1)]
        outcomes = run_batch(together, GENERATION, [commit_of(write) for write in writes])
        assert outcomes == [Done(None)] * sessions
        for write in writes:
            store.write_session(apart, write)
        assert dump(together) == dump(apart)


def test_a_commit_that_fails_leaves_those_beside_it() -> None:
    """Its caller gets its error, nothing of it is stored, and all others are."""
    sessions = 9
    connection, expected = owned(sessions), owned(sessions)
    writes = [first_commit(number) for number in range(1, sessions + 1)]
    broken = structs.replace(writes[4], turns=[structs.replace(running_turn(), turn_id=None)])
    jobs = [commit_of(write) for write in (*writes[:4], broken, *writes[5:])]
    outcomes = run_batch(connection, GENERATION, jobs)
    failed = outcomes.pop(4)
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, apsw.ConstraintError)
    assert outcomes == [Done(None)] * (sessions - 1)
    for write in (*writes[:4], *writes[5:]):
        store.write_session(expected, write)
    assert dump(connection) == dump(expected)


def test_two_commits_of_one_session_are_stored_in_their_order() -> None:
    """The second one stands, also where other sessions' commits are around them."""
    connection = owned(3)
    writes = [first_commit(1), first_commit(2), second_commit(2), first_commit(3)]
    assert run_batch(connection, GENERATION, [commit_of(write) for write in writes]) == [Done(None)] * 4
    expected = owned(3)
    for write in writes:
        store.write_session(expected, write)
    assert dump(connection) == dump(expected)


def test_other_jobs_between_commits_keep_their_place() -> None:
    """A job sees the commits before it, and none of those behind it."""
    connection = owned(2)

    def count(there: apsw.Connection) -> object:
        return there.execute("SELECT count(*) FROM messages").get

    jobs: list[Work] = [commit_of(first_commit(1)), count, commit_of(first_commit(2)), count]
    assert run_batch(connection, GENERATION, jobs) == [Done(None), Done(2), Done(None), Done(4)]


def test_more_sessions_take_no_more_statements() -> None:
    """A batch of 128 commits takes as many statements as one of 2: each waits for the interpreter."""

    def statements(sessions: int) -> int:
        connection = owned(sessions)
        seen: list[str] = []

        def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
            del cursor, bindings
            seen.append(sql)
            return True

        connection.exec_trace = trace
        writes = [
            write_of(
                number,
                [text_message(1)],
                session=structs.replace(new_session(f"s{number}"), message_count=1),
            )
            for number in range(1, sessions + 1)
        ]
        drops = [
            structs.replace(one, messages=[structs.replace(one.messages[0], drops=False)]) for one in writes
        ]
        run_batch(connection, GENERATION, [commit_of(write) for write in drops])
        return len(seen)

    assert statements(128) == statements(2)


def test_an_interaction_is_found_after_its_commit() -> None:
    """Its place is stored with its part."""
    connection = owned(1)
    part = InteractionPart(
        interaction_id="ask",
        interaction_type="approval",
        status="pending",
        request=InteractionRequest(title="May I?"),
        part_id="p",
        sequence=1,
    )
    message = structs.replace(text_message(1), parts=[part])
    commit = structs.replace(write_of(1, [message]), interactions=[("ask", 1, 1)])
    run_batch(connection, GENERATION, [commit_of(commit)])
    found = connection.execute(
        "SELECT body FROM interactions JOIN parts USING (session_no, message_sequence)"
        " WHERE interaction_id = 'ask'"
    ).get
    assert isinstance(found, bytes)
    assert rows.read_part(found) == part
