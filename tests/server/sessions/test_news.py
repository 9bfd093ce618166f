"""Laws of news: the newest of each session, once a tick, and what joiners may have missed (SPEC 4.8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.model import Session
from midstream.server.sessions.bulletin import Bulletin, bulletins
from midstream.server.sessions.news import Item, News


def entity(session_id: str, revision: int, title: str = "") -> Session:
    """A session at a revision."""
    return Session(
        session_id=session_id,
        revision=revision,
        title=title,
        created_at=1,
        updated_at=revision,
        message_count=0,
    )


def told(items: list[Item]) -> dict[str, int | None]:
    """Each session's revision; None where it was removed."""
    assert len({item.session.session_id for item in items}) == len(items)
    return {item.session.session_id: None if item.removed else item.session.revision for item in items}


def test_the_first_news_are_due_at_once_and_the_next_a_tick_later() -> None:
    """Nothing is due where nothing happened."""
    news = News(tick_seconds=0.1)
    assert news.due() is None
    news.note(entity("a", 1), removed=False)
    due = news.due()
    assert due is not None
    assert due <= 0
    assert told(news.take(50.0)) == {"a": 1}
    assert news.due() is None
    news.note(entity("a", 2), removed=False)
    assert news.due() == 50.1


def test_of_a_session_only_the_newest_is_told_and_a_removal_is_the_last() -> None:
    """In whatever order it is learned."""
    news = News(tick_seconds=0.1)
    for session_id, revision, removed in (
        ("a", 2, False), ("a", 3, False), ("a", 1, False),
        ("b", 1, False), ("b", 1, True), ("b", 9, False),
    ):  # fmt: skip
        assert news.note(entity(session_id, revision), removed=removed)
    assert told(news.take(0.0)) == {"a": 3, "b": None}
    assert news.take(1.0) == []


def test_what_was_told_while_somebody_joined_is_told_again_when_they_begin() -> None:
    """But not what is older than what waits, and not for one who gave up."""
    news = News(tick_seconds=0.1)
    news.note(entity("before", 1), removed=False)
    news.take(0.0)
    news.join()
    news.note(entity("a", 1), removed=False)
    news.note(entity("gone", 1), removed=True)
    news.take(1.0)
    news.note(entity("a", 2), removed=False)
    assert news.joined(begins=True)
    assert told(news.take(2.0)) == {"a": 2, "gone": None}
    news.join()
    news.note(entity("b", 1), removed=False)
    news.take(3.0)
    assert news.joined(begins=False)
    assert news.due() is None


def test_two_who_join_at_different_times_both_get_what_they_missed() -> None:
    """What is kept is kept until the last of them has begun."""
    news = News(tick_seconds=0.1)
    news.join()
    news.note(entity("a", 1), removed=False)
    news.take(1.0)
    news.join()
    news.note(entity("b", 1), removed=False)
    news.take(2.0)
    news.joined(begins=True)
    assert told(news.take(3.0)) == {"a": 1, "b": 1}
    news.joined(begins=True)
    assert told(news.take(4.0)) == {"a": 1, "b": 1}
    news.join()
    news.joined(begins=True)
    assert news.due() is None


def test_too_many_news_are_said_to_be_too_many() -> None:
    """Those that wait, and those that are kept for joiners."""
    news = News(tick_seconds=0.1, most=2)
    assert news.note(entity("a", 1), removed=False)
    assert news.note(entity("b", 1), removed=True)
    assert news.note(entity("a", 2), removed=False)
    assert not news.note(entity("c", 1), removed=False)
    news.forget()
    assert news.due() is None
    news.join()
    for session_id in ("a", "b", "c"):
        news.note(entity(session_id, 1), removed=False)
        news.take(0.0)
    assert not news.joined(begins=True)


class Model:
    """Sessions, and what everybody who watches knows of them; those who join know what they read."""

    def __init__(self) -> None:
        self.news = News(tick_seconds=0.1)
        self.state: dict[str, int | None] = {}
        self.joining: list[dict[str, int | None]] = []
        self.watching: list[dict[str, int | None]] = []

    def take(self) -> None:
        """A tick passes."""
        found = told(self.news.take(0.0))
        for known in self.watching:
            for name, revision in found.items():
                before = known.get(name, 0)
                known[name] = None if revision is None or before is None else max(revision, before)

    def join(self) -> None:
        """Somebody's list is read."""
        self.news.join()
        self.joining.append(dict(self.state))

    def begin(self) -> None:
        """The one who joined first has their answer."""
        if self.joining:
            self.news.joined(begins=True)
            self.watching.append(self.joining.pop(0))

    def change(self, name: str, *, removed: bool) -> None:
        """A session changes, or is removed, if it was not."""
        before = self.state.get(name, 0)
        if before is not None:
            self.news.note(entity(name, before + 1), removed=removed)
            self.state[name] = None if removed else before + 1


changes = st.tuples(st.sampled_from("abcd"), st.sampled_from([False, False, True]))


@given(steps=st.lists(st.one_of(changes, st.sampled_from(["take", "join", "begin"])), max_size=60))
def test_whoever_begins_comes_to_know_what_there_is(steps: list[tuple[str, bool] | str]) -> None:
    """However many join and begin, and whenever the ticks come."""
    model = Model()
    acts = {"take": model.take, "join": model.join, "begin": model.begin}
    for step in steps:
        if isinstance(step, str):
            acts[step]()
        else:
            model.change(step[0], removed=step[1])
    model.take()
    while model.joining:
        model.begin()
    model.take()
    assert all(known == model.state for known in model.watching)


@given(
    items=st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=30),
    frame_bytes=st.integers(1, 1_500),
)
def test_news_are_cut_into_frames_of_bounded_length(items: list[tuple[int, bool]], frame_bytes: int) -> None:
    """Each session once and in order; a frame is too long only where it holds one session."""
    news = [
        Item(entity(f"s{number}", number + 1, "x" * size), removed)
        for number, (size, removed) in enumerate(items)
    ]
    frames = bulletins(news, frame_bytes=frame_bytes)
    named: dict[str, bool] = {}
    for bulletin in frames:
        changes = bulletin.frame.changes
        assert changes.changed or changes.removed
        size = len(bulletin.payload(MSGPACK))
        count = len(changes.changed) + len(changes.removed)
        assert size <= frame_bytes + 64 or count == 1
        named |= dict.fromkeys((session.session_id for session in changes.changed), False)
        named |= dict.fromkeys(changes.removed, True)
    assert named == {item.session.session_id: item.removed for item in news}


def test_a_frame_is_encoded_once_for_each_encoding() -> None:
    """However many watch."""
    (bulletin,) = bulletins([Item(entity("a", 1), removed=False)])
    assert isinstance(bulletin, Bulletin)
    payload = bulletin.payload(MSGPACK)
    assert bulletin.payload(MSGPACK) is payload
    assert bulletin.payload(JSON) is bulletin.payload(JSON) != payload
