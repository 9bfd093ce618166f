"""Limits of a draft: each refuses by its name, and none can hinder an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from midstream.protocol.errors import LimitExceeded
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart
from tests.server.sessions.pure_session import snapshot, with_open_message

if TYPE_CHECKING:
    from midstream.protocol.model import Part


def test_limits_refuse_by_name_and_leave_no_trace() -> None:
    """Parts of a message, bytes of a part, bytes of a message."""
    limits = Limits(parts=3, part_bytes=200, message_bytes=300)
    session, message = with_open_message(limits=limits)
    before = snapshot(session)
    fillers: list[Part] = [TextPart(text="x" * 100, state="done") for _ in range(3)]
    cases: list[tuple[str, list[Part]]] = [
        ("part_bytes", [TextPart(text="x" * 200, state="done")]),
        ("message_bytes", fillers[:2]),
        ("parts", [TextPart(text="", state="done") for _ in range(3)]),
    ]
    for limit, parts in cases:
        draft = session.draft()
        for part in parts[:-1]:
            draft.add_part(message, part)
        with pytest.raises(LimitExceeded) as refused:
            draft.add_part(message, parts[-1])
        assert refused.value.details["limit"] == limit
        assert refused.value.details["maximum"] == getattr(limits, limit)
        assert snapshot(session) == before


def test_replaced_and_dropped_parts_give_their_bytes_back() -> None:
    """The size of a message is that of the parts it has now, streamed text included."""
    session, message = with_open_message(limits=Limits(message_bytes=1_000))
    session.say(message, 1, "é" * 200)
    for text in ("x", "y", "z"):
        filler = TextPart(text=text * 450, state="done")
        draft = session.draft()
        draft.truncate(message, 1)
        draft.add_part(message, filler)
        draft.truncate(message, 1)
        assert draft.add_part(message, filler) == 2
        with pytest.raises(LimitExceeded):
            draft.add_part(message, filler)
        draft = session.draft()
        draft.truncate(message, 1)
        draft.add_part(message, filler)
        session.commit(draft)


def test_an_end_never_fails_for_a_limit() -> None:
    """While a turn ends, an error part goes even into a full message."""
    session, message = with_open_message(limits=Limits(parts=1, part_bytes=100, message_bytes=100))
    draft = session.draft()
    with draft.without_limits():
        draft.add_part(message, TextPart(text="x" * 200, state="done"))
    with pytest.raises(LimitExceeded):
        draft.add_part(message, TextPart(text="", state="done"))
    session.commit(draft)
    assert len(session.message(message).parts) == 2
