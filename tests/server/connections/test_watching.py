"""Laws of a connection's watch of the list (SPEC 4.8, 6, 7.11)."""

from __future__ import annotations

import pytest

from midstream.protocol.calls import ListResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import InternalError, Overloaded
from midstream.protocol.frames import ErrorFrame, Result, SessionsChanged
from midstream.protocol.model import Session
from midstream.server.connections.effects import Effect, WatchBegins, WatchEnds
from midstream.server.connections.watching import Watcher
from midstream.server.sessions.bulletin import Bulletin, bulletins
from midstream.server.sessions.news import Item
from tests.server.connections.client import ByHand

both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


def entity(session_id: str, title: str = "") -> Session:
    """A session."""
    return Session(
        session_id=session_id, revision=1, title=title, created_at=1, updated_at=1, message_count=0
    )


def news(*titles: str, frame_bytes: int = 1) -> list[Bulletin]:
    """News of sessions with these titles, a frame each."""
    return bulletins(
        [Item(entity(f"s{number}", title), removed=False) for number, title in enumerate(titles)],
        frame_bytes=frame_bytes,
    )


def ask(client: ByHand, call_id: int) -> Watcher:
    """Call `sessions.watch`, as the calls do."""
    client.call(call_id, "sessions.watch")
    watcher = client.connection.watching.ask(call_id, client.connection.caller)
    client.connection.expect(call_id, "", repeatable=True)
    return watcher


def answer(client: ByHand, call_id: int, *items: Session) -> list[Effect]:
    """Answer it."""
    return client.connection.answer(call_id, ListResult(items=list(items)), now=0)


def watched(client: ByHand, call_id: int = 1) -> Watcher:
    """A watch that has begun, and whose answer was read."""
    watcher = ask(client, call_id)
    assert answer(client, call_id)[0] == WatchBegins(watcher)
    client.read()
    return watcher


@both_codecs
def test_news_stand_behind_the_answer_in_order(codec: Codec) -> None:
    """Also where both wait."""
    client = ByHand(codec)
    watcher = ask(client, 1)
    assert answer(client, 1, entity("a")) == [WatchBegins(watcher)]
    assert watcher.tell(news("one", "two"))
    result, *frames = client.read()
    assert isinstance(result, Result)
    titles = [
        session.title
        for frame in frames
        if isinstance(frame, SessionsChanged)
        for session in frame.changes.changed
    ]
    assert titles == ["one", "two"]


@both_codecs
def test_a_frame_longer_than_a_chunk_goes_in_chunks(codec: Codec) -> None:
    """One session may be that long, where chunks are short."""
    client = ByHand(codec)
    watcher = watched(client)
    title = "x" * (2 * client.outbox.chunk_bytes)
    assert watcher.tell(news(title))
    (frame,) = client.read()
    assert isinstance(frame, SessionsChanged)
    assert frame.changes.changed[0].title == title


def test_a_connection_that_does_not_read_is_told_once_that_something_was_left_out() -> None:
    """When everything that waited has been sent, and never before."""
    client = ByHand()
    watcher = watched(client)
    client.fill()
    assert not watcher.tell(news("lost"))
    frames = client.read()
    assert not [frame for frame in frames if isinstance(frame, SessionsChanged)]
    (frame,) = client.read()
    assert isinstance(frame, SessionsChanged)
    assert frame.changes.incomplete
    assert client.read() == []


def test_a_watch_that_is_cut_says_so_at_once_where_there_is_room() -> None:
    """Nobody has to wait for a flush that has no reason to come."""
    client = ByHand()
    watcher = watched(client)
    watcher.cut()
    (frame,) = client.read()
    assert isinstance(frame, SessionsChanged)
    assert frame.changes.incomplete


def test_one_that_was_cut_before_its_answer_is_told_behind_it() -> None:
    """The answer is not what the server has now, and nothing would say so."""
    client = ByHand()
    watcher = ask(client, 1)
    watcher.cut()
    assert client.read() == []
    assert answer(client, 1) == [WatchEnds(watcher)]
    (result,) = client.read()
    assert isinstance(result, Result)
    (frame,) = client.read()
    assert isinstance(frame, SessionsChanged)
    assert frame.changes.incomplete


def test_the_next_watch_replaces_the_one_before_and_takes_over_what_it_owes() -> None:
    """A client's other lists go by the one that was before: they must hear that they missed something."""
    client = ByHand()
    first = watched(client)
    second = ask(client, 2)
    assert answer(client, 2) == [WatchBegins(second), WatchEnds(first)]
    client.read()
    client.fill()
    second.tell(news("lost"))
    client.outbox.take(10**9)
    third = ask(client, 3)
    assert answer(client, 3) == [WatchEnds(third), WatchEnds(second)]
    client.read()
    (frame,) = client.read()
    assert isinstance(frame, SessionsChanged)
    assert frame.changes.incomplete


def test_a_watch_that_is_refused_leaves_the_one_before() -> None:
    """Also one whose answer finds no room."""
    client = ByHand()
    first = watched(client)
    second = ask(client, 2)
    effects = client.connection.answer(2, InternalError("No."), now=0)
    assert effects == [WatchEnds(second)]
    third = ask(client, 3)
    client.fill()
    assert answer(client, 3, entity("a", "x" * 1_000)) == [WatchEnds(third)]
    errors = [frame for frame in client.read() if isinstance(frame, ErrorFrame)]
    assert [error.error.code for error in errors] == [InternalError.code, Overloaded.code]
    assert first.tell(news("still here"))


def test_the_end_of_a_watch_is_also_that_of_one_under_way() -> None:
    """Its answer comes, and begins nothing."""
    client = ByHand()
    first = watched(client)
    second = ask(client, 2)
    assert client.connection.watching.end() == [WatchEnds(second), WatchEnds(first)]
    assert answer(client, 2) == []


def test_a_lost_connection_ends_its_watches() -> None:
    """Those that begin too; what is answered later begins nothing."""
    client = ByHand()
    first = watched(client)
    second = ask(client, 2)
    assert client.connection.lost() == [WatchEnds(second), WatchEnds(first)]
    assert answer(client, 2) == []
