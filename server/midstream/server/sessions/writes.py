"""What a commit stores: the draft's entities, and what was streamed before it (SPEC 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.model import InteractionPart
from midstream.protocol.transitions import is_open
from midstream.server.storage import rows
from midstream.server.storage.records import (
    AttachmentRow,
    EpochEnd,
    LedgerRow,
    MessageRow,
    PartRow,
    SessionWrite,
)

if TYPE_CHECKING:
    from midstream.server.sessions.projection import FinishedDraft, FinishedMessage, OpenMessage, Projection


def session_write(
    session_no: int,
    projection: Projection,
    finished: FinishedDraft,
    *,
    ledger: LedgerRow,
    epoch_end: EpochEnd | None,
    attachment: AttachmentRow | None = None,
    deleted: bool = False,
) -> SessionWrite:
    """Return the write: each message of the draft whole, as far as the store does not have it yet.

    A part that was only streamed is stored with the first commit of its message, so what is on disk
    is always a state that was shown.
    """
    parts: list[PartRow] = []
    messages: list[MessageRow] = []
    for message in finished.messages:
        opened = projection.open.get(message.head.sequence)
        parts.extend(_unstored_parts(message, opened))
        messages.append(
            MessageRow(
                head=message.head,
                created_version=message.created_version,
                part_count=message.part_count,
                is_open=_is_open(message, opened),
                drops=opened is not None and opened.stored_parts > message.part_count,
                changed_late=message.head.sequence < projection.session.message_count,
            )
        )
    return SessionWrite(
        session_no=session_no,
        ledger=ledger,
        epoch_end=epoch_end,
        session=finished.session,
        messages=messages,
        parts=parts,
        interactions=_interactions(finished),
        turns=finished.turns,
        inputs=finished.inputs,
        attachment=attachment,
        summaries=finished.summaries,
        deleted=deleted,
    )


def _interactions(finished: FinishedDraft) -> list[tuple[str, int, int]]:
    return [
        (part.interaction_id, message.head.sequence, number)
        for message in finished.messages
        for number, part in message.parts.items()
        if isinstance(part, InteractionPart)
    ]


def _unstored_parts(message: FinishedMessage, opened: OpenMessage | None) -> list[PartRow]:
    sequence, revision = message.head.sequence, message.head.revision
    changed = {number: (sequence, number, revision, body) for number, body in message.bodies.items()}
    for number in opened.dirty if opened else ():
        if opened and number not in changed and number <= message.part_count:
            body = rows.encode(opened.live.part(number))
            changed[number] = (sequence, number, opened.part_revisions[number - 1], body)
    return [changed[number] for number in sorted(changed)]


def _is_open(message: FinishedMessage, opened: OpenMessage | None) -> bool:
    if message.head.state == "streaming":
        return True
    kept = (
        (
            opened.live.part(number)
            for number in range(1, min(opened.live.part_count, message.part_count) + 1)
            if number not in message.parts
        )
        if opened
        else ()
    )
    return any(is_open(part) for part in (*message.parts.values(), *kept))
