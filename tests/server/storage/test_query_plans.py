"""What is read of a session costs what it returns, however long the session is."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import re
from collections.abc import Callable
from typing import cast

import apsw
import pytest
from msgspec import structs

from midstream.protocol.model import Message
from midstream.server.storage import listing, messages, store, summaries
from midstream.server.storage.records import SessionWrite, View
from tests.server.storage.books import (
    changed_since,
    create,
    new_connection,
    new_input,
    new_ledger,
    new_session,
    page,
    running_turn,
    text_message,
    write_of,
)

SHORT, LONG = 128, 8_192
NAMES_SESSION_ONLY = re.compile(r"SEARCH \w+ USING .*\(session_no=\?\)")
OF_FEW = ("messages_open", "turns_running", "inputs_queued")
"""Indexes with entries of what may still change only."""

READS: dict[str, Callable[[apsw.Connection, View, int], object]] = {
    "load": lambda connection, view, _: store.load_session(connection, view.session_id),
    "newest page": lambda connection, view, _: page(connection, view, limit=10),
    "a page in the middle": lambda connection, view, count: page(
        connection, view, before=count // 2, limit=10
    ),
    "older": lambda connection, view, count: messages.has_any(connection, view, before=count),
    "span": lambda connection, view, count: messages.span(connection, view, start=count - 9, end=count),
    "catch-up": lambda connection, view, count: changed_since(connection, view, version=count - 9),
    "message": lambda connection, view, count: messages.message_by_id(connection, view, f"m{count // 2}"),
    "prompt": lambda connection, view, count: messages.prompt_of(connection, view, f"turn{count // 2}"),
    "interaction": lambda connection, view, _: messages.find_interaction(connection, view, "ask"),
    "turns": lambda connection, view, count: messages.turns_by_id(
        connection, view.session_no, [f"turn{count // 2}"]
    ),
    "turns since": lambda connection, view, count: messages.turns_since(
        connection, view.session_no, count - 9, 100
    ),
    "input": lambda connection, view, count: store.find_input(connection, view.session_no, f"m{count // 2}"),
    "summary": lambda connection, view, count: summaries.covering(connection, view, count // 2),
    "list": lambda connection, _, __: listing.list_sessions(connection, limit=10, after=None, archived=False),
}


def long_session(count: int) -> tuple[apsw.Connection, View]:
    """A session where each message is the prompt of an ended turn, and some changed late, as they do."""
    connection = new_connection()
    number = create(connection, structs.replace(new_session(), running_turn_id=f"turn{count}"))
    written: list[Message] = [
        structs.replace(text_message(sequence), turn_id=f"turn{sequence}") for sequence in range(1, count + 1)
    ]
    commit = write_of(number, written)
    heads = [structs.replace(row, changed_late=row.head.sequence % 7 == 0) for row in commit.messages]
    turns = [
        structs.replace(running_turn(f"turn{sequence}", sequence + 1), state="completed")
        for sequence in range(1, count)
    ]
    turns.append(running_turn(f"turn{count}", count + 1))
    inputs = [new_input(f"m{sequence}", sequence + 1, "started") for sequence in range(1, count + 1)]
    asked = [("ask", count // 2, 1)]
    store.write_session(
        connection, structs.replace(commit, messages=heads, turns=turns, inputs=inputs, interactions=asked)
    )
    store.write_session(
        connection,
        structs.replace(write_of(number, written[-1:], is_open=True), ledger=new_ledger(count + 1)),
    )
    return connection, View(session_no=number, session_id="s")


def cost(connection: apsw.Connection, job: Callable[[], object]) -> int:
    """The instructions of SQLite that a job takes."""
    taken: list[None] = []

    def count() -> bool:
        taken.append(None)
        return False

    connection.set_progress_handler(count, 1)
    job()
    connection.set_progress_handler(None)
    return len(taken)


@pytest.mark.parametrize("name", READS)
def test_a_read_costs_no_more_in_a_long_session(name: str) -> None:
    """In instructions of SQLite; to halve a session of 64 times the length takes six halvings more."""
    read = READS[name]
    costs: list[int] = []
    for count in (SHORT, LONG):
        connection, view = long_session(count)
        costs.append(cost(connection, lambda: read(connection, view, count)))  # noqa: B023  # called at once
    assert 0 < costs[1] <= costs[0] + 6 * 50


@pytest.mark.parametrize("name", READS)
def test_a_read_scans_no_table_and_no_whole_session(name: str) -> None:
    """SQLite says itself how it goes: by an index, and by more of it than the session's number."""
    connection, view = long_session(SHORT)
    asked: list[tuple[str, object]] = []

    def trace(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        asked.append((sql, bindings))
        return True

    connection.exec_trace = trace
    READS[name](connection, view, SHORT)
    connection.exec_trace = None
    plans = [plan for sql, bindings in asked for plan in plan_of(connection, sql, bindings)]
    assert any("SEARCH" in plan or "USING INDEX" in plan for plan in plans)
    assert [plan for plan in plans if re.match(r"SCAN \w+$", plan) and plan != "SCAN search"] == []
    whole = [plan for plan in plans if NAMES_SESSION_ONLY.search(plan)]
    assert [plan for plan in whole if "sessions" not in plan and not any(few in plan for few in OF_FEW)] == []


def plan_of(connection: apsw.Connection, sql: str, bindings: object) -> list[str]:
    """What SQLite says of a statement."""
    values = cast("tuple[str | int | None, ...]", bindings)
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_a_commit_of_the_newest_message_has_no_entry_that_only_others_need() -> None:
    """Each entry is a page of the file, for each commit of one of many sessions."""
    connection = new_connection()
    number = create(connection)
    commit = write_of(number, [structs.replace(text_message(1), role="agent", state="done", turn_id="t")])
    newest = structs.replace(commit.messages[0], changed_late=False)
    write = SessionWrite(
        session_no=number, ledger=new_ledger(2), messages=[newest], turns=[running_turn("t")]
    )
    store.write_session(connection, write)
    prompts = (
        "SELECT 1 FROM messages INDEXED BY messages_prompts"
        " WHERE role = 'user' AND visibility = 'visible' AND turn_id IS NOT NULL"
    )
    late = "SELECT 1 FROM messages INDEXED BY messages_changed_late WHERE changed_late"
    ended = "SELECT 1 FROM turns INDEXED BY turns_ended WHERE NOT is_running"
    for entries in (prompts, late, ended):
        assert list(connection.execute(entries)) == []
