"""Laws of pages that are under way; vectors hold what becomes of single ones."""

from __future__ import annotations

from midstream.protocol.merge import Replica
from midstream.protocol.model import TextPart
from midstream.protocol.outcomes import Applied, PageOutcome
from tests.protocol.session_model import NAME, SessionModel


class Reader:
    """A replica that holds the second of two messages, which streams."""

    def __init__(self) -> None:
        self.server = SessionModel()
        part = TextPart(part_id="p1", sequence=1, text="", state="streaming")
        for _ in range(2):
            self.server.add("agent", "visible", [part])
        self.replica = Replica(NAME)
        self.replica.apply_sync(self.server.reset(internal=False, limit=1))
        self.server.frames[False].clear()

    def stream(self, count: int) -> None:
        """So many deltas are made and arrive."""
        for _ in range(count):
            self.server.grow(2, 1, "x")
        for frame in self.server.frames[False]:
            assert isinstance(self.replica.apply(frame), Applied)
        self.server.frames[False].clear()


def test_more_frames_than_are_kept_make_a_page_one_to_read_again() -> None:
    """What waits for a page is bounded."""
    reader = Reader()
    reader.replica.expect_page()
    page = reader.server.page(2, internal=False, limit=1)
    reader.stream(2_001)
    assert reader.replica.merge_page(page) is PageOutcome.REREAD
    again = reader.server.page(2, internal=False, limit=1)
    assert reader.replica.merge_page(again) is PageOutcome.MERGED


def test_a_page_that_will_not_come_is_forgotten() -> None:
    """Frames are kept no longer, so what comes late after all is read again."""
    reader = Reader()
    page = reader.server.page(2, internal=False, limit=1)
    reader.replica.expect_page()
    reader.replica.forget_page()
    reader.stream(1)
    assert reader.replica.merge_page(page) is PageOutcome.REREAD
    reader.replica.forget_page()
    assert reader.replica.merge_page(reader.server.page(2, internal=False, limit=1)) is PageOutcome.MERGED
    assert len(reader.replica.messages()) == 2


def test_frames_are_kept_until_the_last_page_that_is_under_way_came() -> None:
    """Two may be asked for at once."""
    reader = Reader()
    first = reader.server.page(2, internal=False, limit=1)
    reader.replica.expect_page()
    reader.stream(3)
    reader.replica.expect_page()
    stale = reader.server.page(None, internal=False, limit=1)
    reader.stream(3)
    assert reader.replica.merge_page(stale) is PageOutcome.DROPPED
    assert reader.replica.merge_page(first) is PageOutcome.MERGED
    assert reader.replica.messages() == reader.server.state.seen(internal=False)
