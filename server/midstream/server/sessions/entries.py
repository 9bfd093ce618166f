"""What is said on the wire of a changed message (SPEC 3.4), in both views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol.frames import Change, ChangeContent, MessageEntry, SessionFrame, Skip, SyncPayload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.protocol.model import Message, Part
    from midstream.server.sessions.projection import FinishedDraft, FinishedMessage


def entry(
    head: Message, parts: Sequence[Part], *, part_count: int, is_new: bool, version: int
) -> MessageEntry:
    """Return the entry of one message in a frame of this version.

    It has all of the message's own fields when it is new to the reader.
    """
    stamp = UNSET if head.revision == version else head.revision
    if not is_new:
        return MessageEntry(
            sequence=head.sequence,
            revision=stamp,
            updated_at=head.updated_at,
            state=head.state,
            part_count=part_count,
            parts=list(parts),
        )
    return MessageEntry(
        message_id=head.message_id,
        sequence=head.sequence,
        revision=stamp,
        session_id=head.session_id,
        turn_id=head.turn_id,
        role=head.role,
        visibility=head.visibility,
        created_at=head.created_at,
        updated_at=head.updated_at,
        origin=head.origin,
        state=head.state,
        part_count=part_count,
        parts=list(parts),
    )


def draft_entry(message: FinishedMessage) -> MessageEntry:
    """Return the entry of a message that a draft changed, in a frame of the draft's version."""
    return entry(
        message.head,
        [message.parts[number] for number in sorted(message.parts)],
        part_count=message.part_count,
        is_new=message.is_new,
        version=message.head.revision,
    )


def is_seen(head: Message, *, include_internal: bool) -> bool:
    """Say whether a view shows the message."""
    return include_internal or head.visibility == "visible"


def change_frame(
    finished: FinishedDraft, channel: int, *, durable: bool, include_internal: bool
) -> SessionFrame:
    """Return the frame of a change in one view: a skip where the view shows nothing of it."""
    content = ChangeContent(
        messages=[
            draft_entry(message)
            for message in finished.messages
            if is_seen(message.head, include_internal=include_internal)
        ],
        turns=finished.turns,
        session=finished.session or UNSET,
    )
    if not (content.messages or content.turns or content.session):
        return Skip(channel, finished.version - 1, finished.version)
    return Change(channel, finished.version, durable, content)


def epoch_sync(finished: FinishedDraft, epoch: str, *, before: int, include_internal: bool) -> SyncPayload:
    """Return the change as the sync that begins an epoch on subscriptions that already are (SPEC 5)."""
    return SyncPayload(
        mode="catchup",
        from_version=before,
        epoch=epoch,
        version=finished.version,
        session=finished.session or UNSET,
        turns=finished.turns,
        messages=[
            draft_entry(message)
            for message in finished.messages
            if is_seen(message.head, include_internal=include_internal)
        ],
    )


def has_internal(finished: FinishedDraft) -> bool:
    """Say whether the two views of the change differ."""
    return any(message.head.visibility == "internal" for message in finished.messages)
