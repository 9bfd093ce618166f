"""Reading the list of sessions: in order, page by page, and whole."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from midstream.server.storage import listing, store
from midstream.server.storage.records import EVERYTHING, Selection, SessionWrite
from tests.server.storage.books import NOW, create, fill, new_connection, new_input, new_ledger, new_session

if TYPE_CHECKING:
    import apsw

    from midstream.server.storage.listing import Place

IDS = ["a", "b", "team-1", "team-2", "team-\U0010ffff", "teams", "tea", "é", "%", "team_1", "*"]
OWNERS = [None, "alice", "bob", "alice", None, "bob", "alice", "alice", None, "bob", "%"]
SELECTIONS = {
    "everything": EVERYTHING,
    "an owner's": Selection(owner="alice"),
    "nobody's": Selection(owner="carol"),
    "a strange owner's": Selection(owner="%"),
    "some ids": Selection(ids=("b", "é", "%", "unknown")),
    "a beginning": Selection(prefixes=("team-",)),
    "all beginnings": Selection(prefixes=("",)),
    "ids and beginnings that overlap": Selection(ids=("team-1", "*"), prefixes=("team", "tea", "x")),
    "nothing": Selection(),
}


def shows(selection: Selection, session_id: str, owner: str | None) -> bool:
    """The law of a selection, session by session."""
    if selection.everything:
        return True
    if selection.owner is not None:
        return owner == selection.owner
    return session_id in selection.ids or session_id.startswith(tuple(selection.prefixes))


def everybodys() -> apsw.Connection:
    """Sessions of several owners, changed in another order than that of their ids."""
    connection = new_connection()
    for number, (session_id, owner) in enumerate(zip(IDS, OWNERS, strict=True)):
        session = new_session(session_id, updated_at=(number * 7) % 5)
        store.create_session(connection, session, new_ledger(), owner=owner)
    return connection


def walk(connection: apsw.Connection, selection: Selection, limit: int) -> list[str]:
    """The whole list that a selection shows, page by page."""
    listed: list[str] = []
    after: Place | None = None
    while True:
        items, after = listing.list_sessions(
            connection, limit=limit, after=after, archived=False, selection=selection
        )
        listed += [session.session_id for session in items]
        if after is None:
            return listed
        assert len(items) == limit


@pytest.mark.parametrize("few", [listing.FEW, 0], ids=["by ids", "in the list's order"])
@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_shows_its_sessions_and_no_other(
    name: str, limit: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the whole list, by whichever way it is read, and pages are full."""
    monkeypatch.setattr(listing, "FEW", few)
    connection, selection = everybodys(), SELECTIONS[name]
    owners = dict(zip(IDS, OWNERS, strict=True))
    expected = [one for one in walk(connection, EVERYTHING, 50) if shows(selection, one, owners[one])]
    assert walk(connection, selection, limit) == expected


@pytest.mark.parametrize("name", ["an owner's", "some ids", "a beginning"])
def test_the_list_of_one_of_many_costs_what_it_shows(name: str) -> None:
    """In instructions of SQLite, with a thousand sessions of others beside it."""
    connection, selection = everybodys(), SELECTIONS[name]
    costs = [_cost(connection, selection)]
    for number in range(1_000):
        store.create_session(connection, new_session(f"other-{number}"), new_ledger(), owner="others")
    costs.append(_cost(connection, selection))
    assert 0 < costs[1] <= costs[0] + 200


def _cost(connection: apsw.Connection, selection: Selection) -> int:
    taken: list[None] = []

    def count() -> bool:
        taken.append(None)
        return False

    connection.set_progress_handler(count, 1)
    walk(connection, selection, 50)
    connection.set_progress_handler(None)
    return len(taken)


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
            items, after = listing.list_sessions(connection, limit=limit, after=after, archived=False)
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
        items, after = listing.list_sessions(connection, limit=10, after=None, archived=archived)
        assert ({session.session_id for session in items}, after) == (expected, None)


def test_a_listed_session_names_its_queue() -> None:
    """As every session does."""
    connection = new_connection()
    number = create(connection)
    fill(connection, number, 1)
    inputs = [new_input("b", 2), new_input("a", 1)]
    store.write_session(connection, SessionWrite(session_no=number, ledger=new_ledger(), inputs=inputs))
    [session], _ = listing.list_sessions(connection, limit=1, after=None, archived=False)
    assert session.queue == ["a", "b"]
