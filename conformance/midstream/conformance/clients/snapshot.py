"""A session as it was at one version, in the view of the subscription (SPEC 1.4). Pure."""

from __future__ import annotations

import msgspec

from midstream.protocol.digest import message_digest
from midstream.protocol.model import Message, Session, Turn


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The session as it was at one version, in the subscription's view."""

    epoch: str
    version: int
    durable: int
    session: Session
    turns: dict[str, Turn]
    messages: dict[int, Message]

    def digests(self, first: int) -> list[tuple[int, int, str]]:
        """Return sequence, revision and digest of the messages from ``first`` upward, in order."""
        return [
            (number, message.revision, message_digest(message))
            for number, message in sorted(self.messages.items())
            if number >= max(first, self.session.first_sequence)
        ]
