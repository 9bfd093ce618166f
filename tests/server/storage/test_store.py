"""The store: a commit is there whole, a load finds what a loop starts from, and a purge only what is gone."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from midstream.protocol.model import Message, Session, TextPart, Turn
from midstream.server.storage import messages, rows, store
from midstream.server.storage.database import Database
from midstream.server.storage.records import AttachmentRow, EpochEnd, LedgerRow, SessionWrite, View
from midstream.server.storage.schema import migrate
from tests import strategies
from tests.server.storage.books import (
    NOW,
    create,
    everything,
    fill,
    new_connection,
    new_input,
    new_ledger,
    new_session,
    new_summary,
    running_turn,
    tables,
    text_message,
    write,
    write_of,
)

LEDGER = LedgerRow(
    version=9, ceiling=500, epoch="second", generation=2, dirty=True, cleared_version=4, last_time=NOW + 1
)


# Commits


@settings(max_examples=60, deadline=None)
@given(
    session=strategies.sessions(),
    written=st.tuples(*(strategies.messages(sequence=number) for number in (1, 2))),
    turn=strategies.turns(),
    parts=st.lists(strategies.user_parts, max_size=2),
)
def test_whatever_is_written_is_read_as_it_was(
    session: Session, written: tuple[Message, ...], turn: Turn, parts: list[TextPart]
) -> None:
    """Session, ledger, messages with all their parts, turn and queued input."""
    connection = new_connection()
    number = create(connection)
    session = structs.replace(session, running_turn_id=turn.turn_id, first_sequence=1)
    item = structs.replace(new_input("waits", 5), parts=parts)
    everything_at_once = structs.replace(
        write_of(number, written, ledger=LEDGER, session=session, is_open=True), turns=[turn], inputs=[item]
    )
    store.write_session(connection, everything_at_once)
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert loaded.session_no == number
    assert loaded.session == structs.replace(session, queue=["waits"])
    assert (loaded.ledger, loaded.turn, loaded.queue) == (LEDGER, turn, [item])
    assert [rows.whole_message(one) for one in loaded.open_messages] == list(written)
    assert everything(connection, number) == list(written)


def test_a_commit_replaces_what_changed_and_keeps_the_rest() -> None:
    """Parts that are not in it stay, those above its part count go; what never changes is not touched."""
    connection = new_connection()
    number = create(connection)
    first = structs.replace(
        text_message(1),
        parts=[TextPart(text=text, part_id=text, sequence=at) for at, text in enumerate("abcd", 1)],
    )
    write(connection, number, first)
    head = structs.replace(first, revision=9, updated_at=NOW + 5, created_at=1, message_id="other", parts=[])
    changed = TextPart(text="B", part_id="b", sequence=2)
    later = write_of(number, [head])
    store.write_session(
        connection,
        structs.replace(
            later,
            messages=[structs.replace(later.messages[0], part_count=3, created_version=99)],
            parts=[(1, 2, 9, rows.encode(changed))],
        ),
    )
    [stored] = messages.span(connection, View(session_no=number, session_id="s"), start=1, end=1)
    assert rows.whole_message(stored) == structs.replace(
        first, revision=9, updated_at=NOW + 5, parts=[first.parts[0], changed, first.parts[2]]
    )
    assert (stored.part_revisions, stored.created_version) == ([2, 9, 2], 2)


def test_a_session_that_did_not_change_keeps_its_row() -> None:
    """Only its ledger moves."""
    connection = new_connection()
    number = create(connection, structs.replace(new_session(), title="kept"))
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER))
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert (loaded.session.title, loaded.session.revision, loaded.ledger) == ("kept", 1, LEDGER)


def test_sessions_do_not_touch_each_other() -> None:
    """Each id of a message, turn or input belongs to its session."""
    connection = new_connection()
    numbers = [create(connection, name) for name in ("a", "b")]
    for number, text in zip(numbers, ("of a", "of b"), strict=True):
        store.write_session(
            connection,
            structs.replace(
                write_of(number, [text_message(1, text)], session=new_session("ab"[number - numbers[0]])),
                turns=[running_turn(revision=number)],
                inputs=[new_input(f"waits {number}", 1)],
                interactions=[("ask", number, 1)],
            ),
        )
    for number, name in zip(numbers, ("a", "b"), strict=True):
        [message] = everything(connection, number, name)
        assert (message.session_id, message.parts[0]) == (
            name,
            TextPart(text=f"of {name}", part_id="p", sequence=1),
        )
        assert [item.message_id for item in store.queued_inputs(connection, number)] == [f"waits {number}"]
        assert messages.turns_by_id(connection, number, ["turn"])[0].revision == number


def test_the_end_of_an_epoch_is_kept() -> None:
    """By the commit that begins the next; an epoch that nobody ended is not known."""
    connection = new_connection()
    number = create(connection)
    end = EpochEnd(epoch="first", version=40, commit=7)
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, epoch_end=end))
    assert store.epoch_end(connection, number, "first") == end
    assert store.epoch_end(connection, number, "second") is None
    assert store.epoch_end(connection, number + 1, "first") is None


def test_the_queue_is_in_the_order_of_acceptance() -> None:
    """Whatever the order of writing; what is no longer queued is not in it."""
    connection = new_connection()
    number = create(connection)
    items = [new_input("c", 3), new_input("a", 1), new_input("b", 2), new_input("old", 0, "started")]
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, inputs=items))
    assert [item.message_id for item in store.queued_inputs(connection, number)] == ["a", "b", "c"]
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert loaded.session.queue == ["a", "b", "c"]


def test_an_id_is_found_as_input_as_message_or_as_both() -> None:
    """An input that became a message is known with its content, an agent's message is only taken."""
    connection = new_connection()
    number = create(connection)
    waits, started = new_input("waits", 1), new_input("m1", 2, "started")
    store.write_session(
        connection,
        structs.replace(write_of(number, [text_message(1), text_message(2)]), inputs=[waits, started]),
    )
    assert store.find_input(connection, number, "waits") == (waits, False)
    assert store.find_input(connection, number, "m1") == (structs.replace(started, parts=[]), True)
    assert store.find_input(connection, number, "m2") == (None, True)
    assert store.find_input(connection, number, "m3") == (None, False)
    assert store.find_input(connection, number + 1, "m1") == (None, False)


# Loading


def test_a_load_holds_what_may_still_change() -> None:
    """Open messages, the running turn; of a closed conversation nothing but the session."""
    connection = new_connection()
    number = create(connection)
    fill(connection, number, 3)
    store.write_session(connection, write_of(number, [text_message(4)], is_open=True))
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert [one.head.sequence for one in loaded.open_messages] == [4]
    store.write_session(connection, write_of(number, [text_message(4)]))
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert (loaded.open_messages, loaded.turn, loaded.queue) == ([], None, [])


@pytest.mark.parametrize("status", ["forking", "deleted"])
def test_a_session_that_is_not_live_cannot_be_loaded(status: str) -> None:
    """Not yet, or not any more; its id is taken all the same."""
    connection = new_connection()
    create(connection, status=status)
    assert store.load_session(connection, "s") is None
    assert store.load_session(connection, "unknown") is None
    with pytest.raises(apsw.ConstraintError):
        create(connection)


def test_sessions_with_work_are_woken() -> None:
    """A turn that runs or input that waits; not those that are deleted or being made."""
    connection = new_connection()
    for name in ("running", "waiting", "idle"):
        number = create(connection, name)
        session = new_session(name)
        if name == "running":
            session = structs.replace(session, running_turn_id="turn")
        inputs = [new_input("m", 1, "queued" if name == "waiting" else "started")]
        store.write_session(
            connection, SessionWrite(session_no=number, ledger=LEDGER, session=session, inputs=inputs)
        )
    for status in ("forking", "deleted"):
        create(connection, structs.replace(new_session(status), running_turn_id="turn"), status=status)
    assert store.sessions_to_wake(connection) == ["running", "waiting"]


def test_what_a_key_or_an_id_made_is_found() -> None:
    """Both at once, in whatever status; no key is not a key."""
    connection = new_connection()
    store.create_session(connection, new_session("a"), new_ledger(), key="k", content_hash="h")
    create(connection, "b", status="deleted")
    assert store.find_created(connection, session_id="a", key=None) == [("a", "live", "k", "h")]
    assert store.find_created(connection, session_id="b", key="k") == [
        ("a", "live", "k", "h"),
        ("b", "deleted", None, None),
    ]
    assert store.find_created(connection, session_id=None, key=None) == []


# Forks


def test_a_fork_is_hidden_until_it_is_shown() -> None:
    """Its batches go in beside everything else."""
    connection = new_connection()
    number = create(connection, status="forking")
    for sequence in (1, 2):
        batch = write_of(number, [text_message(sequence)])
        store.write_forked(connection, number, batch.messages, batch.parts)
    assert store.load_session(connection, "s") is None
    store.show_forked(connection, number)
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert everything(connection, number) == [text_message(1), text_message(2)]


# Purge


def purge_all(connection: apsw.Connection, number: int) -> int:
    """Purge to the end; give the number of batches."""
    batches = 1
    while store.purge(connection, number):
        batches += 1
    return batches


def with_everything(status: str, count: int) -> tuple[apsw.Connection, int, dict[str, int]]:
    """A session with rows in every table, and another one beside it."""
    connection = new_connection()
    number = 0
    for name in ("beside", "s"):
        number = create(connection, name, status=status if name == "s" else "live")
        fill(connection, number, count if name == "s" else 2)
        store.write_session(
            connection,
            SessionWrite(
                session_no=number,
                ledger=LEDGER,
                epoch_end=EpochEnd(epoch="first", version=1, commit=1),
                turns=[running_turn()],
                inputs=[new_input("m", 1)],
                interactions=[("ask", 1, 1), ("ask later", count, 1)],
                attachment=AttachmentRow(turn_id="turn", generation=1, n=1, worker="w"),
                summaries=[new_summary(1, 2)],
            ),
        )
    beside = dict.fromkeys(("sessions", "epochs", "turns", "inputs", "attachments", "summaries"), 1)
    return connection, number, beside | {"messages": 2, "parts": 2, "interactions": 2}


@pytest.mark.parametrize("count", [0, 1, 200, 500])
def test_a_deleted_session_leaves_nothing_but_its_id(count: int) -> None:
    """In batches, and nothing of another session goes; its title and metadata went with the deletion."""
    connection, number, beside = with_everything("live", count)
    session = structs.replace(new_session(), title="secret", metadata={"also": "secret"})
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, session=session))
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, deleted=True))
    assert store.sessions_to_clean(connection) == [number]
    assert purge_all(connection, number) == count // 200 + 1
    assert tables(connection) == beside | {"sessions": 2}
    [row] = connection.execute("SELECT * FROM sessions WHERE session_no = ?", (number,))
    assert "secret" not in str(row)
    assert store.find_created(connection, session_id="s", key=None)[0][1] == "deleted"
    assert store.sessions_to_clean(connection) == []


@pytest.mark.parametrize("count", [0, 3, 200])
def test_a_purge_that_was_cut_off_is_found_at_the_next_start(count: int) -> None:
    """Wherever it was cut: as long as anything is left, the session is listed."""
    connection, number, beside = with_everything("deleted", count)
    while store.sessions_to_clean(connection) == [number]:
        store.purge(connection, number)
    assert tables(connection) == beside | {"sessions": 2}


def test_no_batch_of_a_purge_is_long() -> None:
    """Whatever a session has much of: other sessions' commits wait for it."""
    connection, number, beside = with_everything("deleted", 450)
    many = SessionWrite(
        session_no=number,
        ledger=LEDGER,
        turns=[running_turn(f"turn {count}") for count in range(450)],
        inputs=[new_input(f"input {count}", count + 2) for count in range(450)],
        summaries=[new_summary(count, count) for count in range(3, 450)],
    )
    store.write_session(connection, many)
    before, goes_on = tables(connection), True
    while goes_on:
        goes_on = store.purge(connection, number)
        left = tables(connection)
        assert all(before[name] - count <= 200 for name, count in left.items())
        before = left
    assert before == beside | {"sessions": 2}


def test_a_fork_that_was_cut_off_is_removed_whole() -> None:
    """Its id and key are free again: nobody has seen it."""
    connection, number, beside = with_everything("forking", 3)
    assert store.sessions_to_clean(connection) == [number]
    purge_all(connection, number)
    assert tables(connection) == beside
    assert store.purge(connection, number) is False
    create(connection)


def test_a_cleared_session_loses_what_is_below_its_first_sequence() -> None:
    """Messages, their parts, and where its interactions were; inputs stay known, turns too."""
    connection, number, _ = with_everything("live", 600)
    session = structs.replace(new_session(), first_sequence=551, message_count=600)
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, session=session))
    assert store.sessions_to_clean(connection) == [number]
    assert purge_all(connection, number) == 550 // 200 + 1
    assert [message.sequence for message in everything(connection, number)] == list(range(551, 601))
    view = View(session_no=number, session_id="s", first=551)
    assert messages.find_interaction(connection, view, "ask") is None
    left = tables(connection)
    assert (left["messages"], left["parts"], left["interactions"]) == (52, 52, 3)
    assert left["summaries"] == 1
    assert store.find_input(connection, number, "m")[0] is not None
    assert messages.turns_by_id(connection, number, ["turn"]) == [running_turn()]
    assert store.sessions_to_clean(connection) == []


# A database


async def test_a_job_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    """A commit of a session is stored whole or not at all."""
    database = await Database.open(tmp_path / "a.db", migrate=migrate, inline=True, synchronous="OFF")
    number = await database.write(partial(create, session="s"))
    broken = structs.replace(
        write_of(number, [text_message(1)]), turns=[structs.replace(running_turn(), turn_id=None)]
    )
    with pytest.raises(apsw.ConstraintError):
        await database.write(partial(store.write_session, write=broken))
    loaded = await database.read(partial(store.load_session, session_id="s"))
    assert loaded is not None
    assert loaded.ledger == new_ledger()
    assert await database.read(partial(everything, number=number)) == []
    await database.close()


def test_an_absent_title_is_absent_again() -> None:
    """Taking a title away is a change like any other."""
    connection = new_connection()
    number = create(connection, structs.replace(new_session(), title="t", archived_at=NOW))
    session = structs.replace(new_session(), revision=3)
    store.write_session(connection, SessionWrite(session_no=number, ledger=LEDGER, session=session))
    loaded = store.load_session(connection, "s")
    assert loaded is not None
    assert (loaded.session.title, loaded.session.archived_at, loaded.session.revision) == (UNSET, UNSET, 3)
