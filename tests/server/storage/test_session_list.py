"""Reading the list of sessions: in order, page by page, and whole."""

from __future__ import annotations

from msgspec import structs

from midstream.server.storage import messages, store
from midstream.server.storage.records import SessionWrite
from tests.server.storage.books import NOW, create, fill, new_connection, new_input, new_ledger, new_session


def test_sessions_are_listed_by_their_last_change_page_by_page() -> None:
    """Each once; the newest first, and of those that changed at one time by id, as a client orders them."""
    connection = new_connection()
    times = [5, 9, 5, 5, 1, 9]
    for number, time in enumerate(times, 1):
        create(connection, new_session(f"s{number}", updated_at=time))
    expected = [f"s{number}" for _, number in sorted((-t, n) for n, t in enumerate(times, 1))]
    for limit in (1, 2, 4, 10):
        listed: list[str] = []
        after, pages = None, 0
        while pages == 0 or after is not None:
            items, after = messages.list_sessions(connection, limit=limit, after=after, archived=False)
            listed += [session.session_id for session in items]
            pages += 1
        assert listed == expected
        assert pages == -(-len(times) // limit)


def test_only_live_sessions_are_listed_and_archived_ones_where_asked() -> None:
    """Those that are being made or were deleted never are."""
    connection = new_connection()
    create(connection, new_session("live"))
    create(connection, structs.replace(new_session("archived"), archived_at=NOW))
    for status in ("forking", "deleted"):
        create(connection, new_session(status), status=status)
    for archived, expected in ((False, {"live"}), (True, {"archived"})):
        items, after = messages.list_sessions(connection, limit=10, after=None, archived=archived)
        assert ({session.session_id for session in items}, after) == (expected, None)


def test_a_listed_session_names_its_queue() -> None:
    """As every session does."""
    connection = new_connection()
    number = create(connection)
    fill(connection, number, 1)
    inputs = [new_input("b", 2), new_input("a", 1)]
    store.write_session(connection, SessionWrite(session_no=number, ledger=new_ledger(), inputs=inputs))
    [session], _ = messages.list_sessions(connection, limit=1, after=None, archived=False)
    assert session.queue == ["a", "b"]
