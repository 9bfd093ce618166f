"""Which segment a page lies in, and what lies below it (SPEC 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, structs

from midstream.server.storage import messages, summaries

if TYPE_CHECKING:
    import apsw
    from msgspec import UnsetType

    from midstream.protocol.calls import PageSource
    from midstream.protocol.model import Session, Summary
    from midstream.server.storage.records import View


class Segment(NamedTuple):
    """A stretch of messages that one summary closed; or those behind the last one."""

    source: PageSource
    start: int
    """Its first message."""
    summary: Summary | None
    """What closed it; where it is the active one, the last there is."""
    has_earlier: bool
    """Whether messages that the view shows exist below it."""


def segment_of(
    connection: apsw.Connection, view: View, *, session: Session, before: int | UnsetType
) -> Segment:
    """Return the segment that holds the message right below ``before``; the active one without it.

    Segments join without holes, so walking back from the start of each visits every message.
    """
    last = session.message_count if before is UNSET else min(before - 1, session.message_count)
    closed = before is not UNSET and view.first <= last <= session.summarized_through
    summary = summaries.covering(connection, view, last if closed else session.summarized_through)
    if closed and summary is not None:
        start = summary.from_sequence
    else:
        start = max(session.summarized_through + 1, view.first)
    has_earlier = messages.has_any(connection, view, before=min(start, last + 1))
    return Segment("segment" if closed else "active", start, summary, has_earlier)


def within(view: View, segment: Segment | None) -> View:
    """Return the view that shows nothing below the segment."""
    return view if segment is None else structs.replace(view, first=segment.start)
