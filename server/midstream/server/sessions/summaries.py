"""Summaries: what closes a segment of the conversation (SPEC 8.10). Pure: fills a draft.

A summary is derived from messages. It is none itself: it has no sequence, is in no page of
messages, and nothing that a reader merges depends on it but the session's ``summarized_through``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.errors import IdempotencyConflict, InvalidRequest, LimitExceeded, Refused
from midstream.protocol.model import Summary
from midstream.protocol.values import is_unicode

if TYPE_CHECKING:
    from midstream.server.sessions.draft import Draft


def repeated(known: Summary | None, text: str) -> Summary | None:
    """Return the summary that closes with a message already, where it has this text: this is a repeat.

    Raises:
        IdempotencyConflict: it has another text.

    """
    if known is not None and known.text != text:
        raise IdempotencyConflict("through_sequence", str(known.through_sequence))
    return known


def compact(draft: Draft, through: int, text: str, *, subject: str | None) -> Summary:
    """Close the segment from behind the last summary up to and with message ``through``.

    Raises:
        InvalidRequest: there is no such message, or it is summarized already; or there is no text.
        Refused: a message up to there can still change.
        LimitExceeded: the text is longer than ``summary_bytes``.

    """
    session = draft.session
    _check_text(text, draft.limits.summary_bytes)
    if through > session.message_count:
        raise _refused(f"is above the session's last message, {session.message_count}")
    if through < session.first_sequence:
        raise _refused(f"was cleared; the first message is {session.first_sequence}")
    if through <= session.summarized_through:
        raise _refused(f"must be above the last summary's, {session.summarized_through}")
    opened = next((number for number in draft.open_sequences() if number <= through), None)
    if opened is not None:
        raise Refused(
            "message_open",
            f"Message {opened} can still change. Compact up to the one before it, or wait for its end.",
        )
    summary = Summary(
        from_sequence=max(session.summarized_through + 1, session.first_sequence),
        through_sequence=through,
        text=text,
        created_at=draft.now,
        subject=UNSET if subject is None else subject,
    )
    draft.summaries.append(summary)
    draft.session = structs.replace(session, summarized_through=through)
    return summary


def _check_text(text: str, maximum: int) -> None:
    if not text.strip():
        raise InvalidRequest("summary", "has no text; say what the messages said")
    if not is_unicode(text):
        raise InvalidRequest("summary", "is not valid Unicode (a lone surrogate); send whole code points")
    size = len(text.encode())
    if size > maximum:
        raise LimitExceeded("summary_bytes", maximum, size)


def _refused(problem: str) -> InvalidRequest:
    return InvalidRequest("through_sequence", problem)
