"""Any changes of one message, against lists of texts: what is seen, what is on disk, what would be."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from midstream.protocol.model import TextPart
from tests.server.sessions.pure_session import PureSession, streaming_text, with_open_message

texts = st.text(max_size=5)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), texts),
        st.tuples(st.just("put"), texts),
        st.tuples(st.just("cut"), st.integers(0, 4)),
        st.tuples(st.just("say"), texts),
        st.tuples(st.just("commit"), st.just("")),
        st.tuples(st.just("show"), st.just("")),
        st.tuples(st.just("drop"), st.just("")),
        st.tuples(st.just("crash"), st.just("")),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_a_message_is_what_its_changes_say_and_the_store_what_was_committed(
    changes: list[tuple[str, str | int]],
) -> None:
    """Against two lists of texts: one that is seen, one that is on disk; sizes and revisions fit them."""
    session, message = with_open_message()
    seen, stored, future = [""], [""], [""]
    draft = session.draft()
    for what, value in changes:
        if what == "add":
            draft.add_part(message, streaming_text(str(value)))
            future.append(str(value))
        elif what == "put" and future:
            part = draft.message(message).part(len(future))
            draft.put_part(message, structs.replace(part, text=str(value)))
            future[-1] = str(value)
        elif what == "cut":
            draft.truncate(message, min(int(value), len(future)))
            future = future[: int(value)]
        elif what == "say" and seen:
            session.say(message, len(seen), str(value))
            seen[-1] += str(value)
            draft, future = session.draft(), list(seen)
        elif what in {"commit", "show", "drop"}:
            if what == "commit":
                draft.message(message)
                session.commit(draft)
                seen, stored = list(future), list(future)
            elif what == "show" and not draft.is_empty():
                session.show(draft)
                seen = list(future)
            draft, future = session.draft(), list(seen)
        elif what == "crash":
            session = PureSession(session.store, ids=session.ids, generation=session.versions.published)
            seen = list(stored)
            again = session.draft()
            again.touch_parts(message)
            session.commit(again)
            draft, future = session.draft(), list(seen)
        assert shown_texts(session, message) == seen
        assert stored_texts(session, message) == stored
        opened = session.projection.open[message]
        sizes = [len(msgspec.msgpack.encode(part)) for part in opened.live.parts()]
        assert opened.sizes == pytest.approx(sizes, abs=4)  # a longer text has a longer header
        assert len(opened.part_revisions) == len(seen)


def shown_texts(session: PureSession, message: int) -> list[str]:
    """The texts of a message as clients see them."""
    return [part.text for part in session.message(message).parts if isinstance(part, TextPart)]


def stored_texts(session: PureSession, message: int) -> list[str]:
    """The texts of a message as the next load would find them."""
    stored = session.store.stored_message(message)
    return [msgspec.msgpack.decode(part, type=TextPart).text for part in stored.parts]
