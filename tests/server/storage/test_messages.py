"""Reading messages: pages, spans, what changed, and what was asked."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from midstream.protocol.model import InteractionPart, InteractionRequest, TextPart, Turn
from midstream.server.storage import messages, rows, store
from midstream.server.storage.records import SessionWrite, View
from tests.server.storage.books import (
    NOW,
    changed_since,
    create,
    new_connection,
    new_ledger,
    page,
    sequences,
    text_message,
    write,
    write_of,
)


def view_of(number: int, *, first: int = 1, internal: bool = True) -> View:
    """What a reader sees of the session."""
    return View(session_no=number, session_id="s", first=first, include_internal=internal)


def with_messages(count: int, *, internal: tuple[int, ...] = ()) -> tuple[apsw.Connection, View]:
    """A session with this many messages, some of them internal."""
    connection = new_connection()
    number = create(connection)
    write(
        connection,
        number,
        *(text_message(sequence, internal=sequence in internal) for sequence in range(1, count + 1)),
    )
    return connection, view_of(number)


# Pages


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(0, 12),
    internal=st.sets(st.integers(1, 12)),
    first=st.integers(1, 14),
    include_internal=st.booleans(),
    limit=st.integers(1, 14),
    max_bytes=st.integers(1, 400),
    before=st.none() | st.integers(1, 14),
)
def test_a_page_is_the_newest_messages_that_fit(  # what a page depends on
    count: int,
    internal: set[int],
    first: int,
    include_internal: bool,  # noqa: FBT001  # drawn by Hypothesis
    limit: int,
    max_bytes: int,
    before: int | None,
) -> None:
    """Against a list: up to the limit and the bytes, but at least one; ``more`` is what a reader may see."""
    connection, whole_view = with_messages(count, internal=tuple(internal))
    view = structs.replace(whole_view, first=first, include_internal=include_internal)
    found, more = messages.page(connection, view, before=before, limit=limit, max_bytes=max_bytes)
    shown = [
        number
        for number in range(first, count + 1)
        if (include_internal or number not in internal) and (before is None or number < before)
    ]
    size = sum(map(messages.size_of, found))
    got = [one.sequence for one in found]
    assert got == shown[len(shown) - len(got) :]
    assert more == (len(got) < len(shown))
    assert len(got) <= limit
    assert size <= max_bytes or len(got) == 1
    if more and len(got) < limit:
        assert size + messages.size_of(found[0]) > max_bytes
    assert got or not shown


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_walking_pages_visits_each_message_once_while_others_are_written(limit: int) -> None:
    """What is written meanwhile is above all that is still to be visited."""
    connection, view = with_messages(40, internal=(3, 4, 5, 20))
    view = structs.replace(view, include_internal=False)
    visited: list[int] = []
    before, more = None, True
    while more:
        found, more = page(connection, view, before=before, limit=limit)
        visited = [one.sequence for one in found] + visited
        before = visited[0]
        write(connection, view.session_no, text_message(40 + len(visited)))
    assert visited == [number for number in range(1, 41) if number not in {3, 4, 5, 20}]


def test_a_page_carries_whole_messages() -> None:
    """With their parts, ids and times."""
    connection, view = with_messages(3)
    found, _ = page(connection, view)
    assert list(map(rows.decoded, found)) == [text_message(number) for number in (1, 2, 3)]


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 20), min_size=1, max_size=6),
    limit=st.integers(1, 7),
    max_bytes=st.integers(1, 2_000),
    hidden=st.sets(st.integers(1, 6)),
)
def test_a_page_has_all_parts_of_its_messages(
    counts: list[int], limit: int, max_bytes: int, hidden: set[int]
) -> None:
    """However many they are, in whatever steps they are read, and wherever the bytes end it."""
    connection = new_connection()
    number = create(connection)
    written = [
        structs.replace(
            text_message(sequence, internal=sequence in hidden),
            parts=[
                TextPart(text="x" * place, part_id=f"p{place}", sequence=place)
                for place in range(1, count + 1)
            ],
        )
        for sequence, count in enumerate(counts, 1)
    ]
    write(connection, number, *written)
    view = View(session_no=number, session_id="s", include_internal=False)
    found, _ = messages.page(connection, view, before=None, limit=limit, max_bytes=max_bytes)
    shown = [message for message in written if message.visibility == "visible"]
    assert list(map(rows.decoded, found)) == shown[len(shown) - len(found) :]
    assert found or not shown
    assert len(found) in (0, 1) or sum(map(messages.size_of, found)) <= max_bytes


@pytest.mark.parametrize("internal", [(), (7, 9)])
def test_a_longer_page_takes_no_more_statements(internal: tuple[int, ...]) -> None:
    """Each statement waits for the interpreter, in the reader's thread."""
    connection, view = with_messages(60, internal=internal)
    view = structs.replace(view, include_internal=False)
    seen: list[str] = []

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        del cursor, bindings
        seen.append(sql)
        return True

    connection.exec_trace = trace
    for limit in (1, 50):
        assert len(page(connection, view, limit=limit)[0]) == limit
    assert len(seen) == 2 * 2


# Spans and single messages


def test_a_span_includes_both_its_ends_and_only_what_its_view_shows() -> None:
    """Ascending."""
    connection, view = with_messages(8, internal=(4,))
    assert sequences(messages.span(connection, view, start=3, end=5)) == [3, 4, 5]
    seen = structs.replace(view, first=4, include_internal=False)
    assert sequences(messages.span(connection, seen, start=1, end=2**53)) == [5, 6, 7, 8]
    assert sequences(messages.span(connection, view, start=5, end=4)) == []


def test_a_message_is_found_by_its_id_where_the_view_shows_it() -> None:
    """Not a cleared one, not a hidden one, not another session's."""
    connection, view = with_messages(3, internal=(2,))
    other = create(connection, "other")

    def found(seen: View, message_id: str) -> bool:
        return messages.message_by_id(connection, seen, message_id) is not None

    assert found(view, "m2")
    assert not found(structs.replace(view, include_internal=False), "m2")
    assert found(structs.replace(view, include_internal=False), "m3")
    assert not found(structs.replace(view, first=2), "m1")
    assert not found(view_of(other), "m1")
    assert not found(view, "m4")


def test_open_messages_are_those_that_may_change() -> None:
    """In order."""
    connection, view = with_messages(2)
    store.write_session(
        connection, write_of(view.session_no, [text_message(4), text_message(3)], is_open=True)
    )
    assert sequences(messages.open_messages(connection, view)) == [3, 4]


# What changed


@settings(max_examples=100, deadline=None)
@given(
    revisions=st.lists(st.integers(1, 20), max_size=8),
    version=st.integers(0, 20),
    first=st.integers(1, 9),
    internal=st.sets(st.integers(1, 8)),
    always=st.sets(st.integers(1, 8)),
    max_messages=st.integers(1, 8),
)
def test_what_changed_since_a_version_is_what_has_a_greater_revision(  # what it depends on
    revisions: list[int],
    version: int,
    first: int,
    internal: set[int],
    always: set[int],
    max_messages: int,
) -> None:
    """Against a list; with those that changed in memory only; None where they are too many."""
    connection = new_connection()
    number = create(connection)
    write(
        connection,
        number,
        *(
            text_message(at, revision=revision, internal=at in internal)
            for at, revision in enumerate(revisions, 1)
        ),
    )
    view = view_of(number, first=first, internal=False)
    expected = [
        at
        for at, revision in enumerate(revisions, 1)
        if at >= first and at not in internal and (revision > version or at in always)
    ]
    found = changed_since(connection, view, version=version, max_messages=max_messages, always=always)
    if len(expected) > max_messages:
        assert found is None
    else:
        assert sequences(found) == expected


@settings(max_examples=200, deadline=None)
@given(
    life=st.lists(
        st.tuples(st.integers(0, 2), st.sets(st.integers(1, 12), max_size=3)), min_size=1, max_size=12
    ),
    internal=st.sets(st.integers(1, 12)),
    first=st.integers(1, 9),
    include_internal=st.booleans(),
    max_messages=st.integers(1, 12),
)
def test_what_changed_is_found_whichever_messages_changed_late(  # what it depends on
    life: list[tuple[int, set[int]]],
    internal: set[int],
    first: int,
    include_internal: bool,  # noqa: FBT001  # drawn by Hypothesis
    max_messages: int,
) -> None:
    """Each commit makes messages and changes others; it says which had a newer one: from every version."""
    connection = new_connection()
    number = create(connection)
    created: list[int] = []
    revisions: list[int] = []
    for version, (new, changed) in enumerate(life, 2):
        before = len(revisions)
        created += [version] * new
        revisions += [version] * new
        for sequence in changed & {*range(1, before + 1)}:
            revisions[sequence - 1] = version
        written = [
            text_message(sequence, revision=version, internal=sequence in internal)
            for sequence, revision in enumerate(revisions, 1)
            if revision == version
        ]
        commit = write_of(number, written)
        heads = [
            structs.replace(
                row,
                created_version=created[row.head.sequence - 1],
                changed_late=row.head.sequence < before,
            )
            for row in commit.messages
        ]
        store.write_session(connection, structs.replace(commit, messages=heads))
    view = view_of(number, first=first, internal=include_internal)
    for version in range(len(life) + 2):
        expected = [
            sequence
            for sequence, revision in enumerate(revisions, 1)
            if sequence >= first and (include_internal or sequence not in internal) and revision > version
        ]
        found = changed_since(connection, view, version=version, max_messages=max_messages)
        if len(expected) > max_messages:
            assert found is None
        else:
            assert sequences(found) == expected


def test_what_changed_is_counted_in_the_bytes_of_changed_parts() -> None:
    """A large part that did not change costs nothing; too many changed bytes are too much."""
    connection = new_connection()
    number = create(connection)
    large = text_message(1, "x" * 1_000, revision=2)
    write(connection, number, large)
    small = structs.replace(large.parts[0], sequence=2, part_id="q", text="y")
    later = structs.replace(large, revision=5, parts=[*large.parts, small])
    commit = write_of(number, [later])
    store.write_session(connection, structs.replace(commit, parts=commit.parts[1:]))
    assert sequences(changed_since(connection, view_of(number), version=4, max_bytes=100)) == [1]
    assert changed_since(connection, view_of(number), version=1, max_bytes=100) is None


@pytest.mark.parametrize("shown", [True, False])
def test_catching_up_does_not_read_the_whole_conversation(shown: bool) -> None:  # noqa: FBT001  # a parameter
    """What changed lately is found from the newest message, also above hidden ones; what is open is known."""
    connection, view = with_messages(2_000, internal=() if shown else tuple(range(3, 1_999)))
    view = structs.replace(view, include_internal=shown)
    steps: list[None] = []

    def count() -> bool:
        steps.append(None)
        return False

    connection.set_progress_handler(count, 1_000)
    assert sequences(changed_since(connection, view, version=1_999)) == [1_999, 2_000]
    assert sequences(messages.open_messages(connection, view)) == []
    assert len(steps) <= 2


# Interactions and turns


def asked(status: str = "pending") -> InteractionPart:
    """An approval."""
    return InteractionPart(
        part_id="p",
        sequence=1,
        interaction_id="ask",
        interaction_type="approval",
        status="pending" if status == "pending" else "expired",
        request=InteractionRequest(title="?"),
    )


def test_an_interaction_is_found_where_it_is_as_it_is() -> None:
    """Its place is noted once; its part is read each time; a cleared one is gone."""
    connection = new_connection()
    number = create(connection)
    for status in ("pending", "expired"):
        message = structs.replace(text_message(1), role="agent", state="done", parts=[asked(status)])
        store.write_session(
            connection, structs.replace(write_of(number, [message]), interactions=[("ask", 1, 1)])
        )
        assert messages.find_interaction(connection, view_of(number), "ask") == asked(status)
    assert messages.find_interaction(connection, view_of(number), "other") is None
    assert messages.find_interaction(connection, view_of(number, first=2), "ask") is None
    assert messages.find_interaction(connection, view_of(number + 1), "ask") is None


def test_turns_are_found_by_id_and_by_revision() -> None:
    """In the order asked for, or in that of their changes; too many are None."""
    connection = new_connection()
    number = create(connection)
    turns = [
        Turn(
            turn_id=f"t{revision}",
            revision=revision,
            state="running",
            phase="starting",
            phase_since=NOW,
            started_at=NOW,
        )
        for revision in (5, 3, 4)
    ]
    store.write_session(connection, SessionWrite(session_no=number, ledger=new_ledger(), turns=turns))
    five, three, four = turns
    assert messages.turns_by_id(connection, number, ["t4", "gone", "t5"]) == [four, five]
    assert messages.turns_since(connection, number, 3, 2) == [four, five]
    assert messages.turns_since(connection, number, 2, 3) == [three, four, five]
    assert messages.turns_since(connection, number, 2, 2) is None
    assert messages.turns_since(connection, number, 5, 2) == []
