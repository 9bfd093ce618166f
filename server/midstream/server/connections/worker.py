"""A connection that registered as a worker: what it sends in its attachments, and what goes to it (SPEC 14).

Pure: frames go into the outbox, in the lane of their session, so that they stand behind the answers
to calls about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from midstream.protocol.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from midstream.protocol.agent_calls import RegisterParams
    from midstream.protocol.frames import WorkerFrame
    from midstream.server.connections.outbox import Outbox
    from midstream.server.sessions.access import SessionRef
    from midstream.server.sessions.commands import BadWrite, TakesWrites

_BEHIND: Final = 2
"""Marks of an outbox past which a worker counts as one that does not read: acknowledgements are small, and
the answer to an attach alone may be longer than the mark."""


class Worker:
    """The worker that one connection is; a :class:`~midstream.server.sessions.commands.WorkerLink`."""

    def __init__(
        self,
        params: RegisterParams,
        outbox: Outbox,
        *,
        send_away: Callable[[], None],
        may_run: Callable[[SessionRef], bool] = lambda _: True,
    ) -> None:
        """Register under a name. ``send_away`` closes the connection because another took the name.

        ``may_run`` says whether the worker may run the turns of a session.
        """
        self.may_run = may_run
        self.name = params.name
        self.instance = params.instance
        self.resumes = params.resumes
        self.is_gone = False
        self._send_away = send_away
        self._outbox = outbox
        self._attachments: dict[int, TakesWrites] = {}
        self._channels = 0

    @property
    def is_behind(self) -> bool:
        """Whether more waits to be sent than the worker reads."""
        return self._outbox.waits_above(_BEHIND)

    def send_away(self) -> None:
        """Close the connection, because another process took the worker's name."""
        self._send_away()

    def open(self, attachment: TakesWrites) -> int:
        """Give an attachment its channel."""
        self._channels += 1
        self._attachments[self._channels] = attachment
        return self._channels

    def send(self, session_id: str, frame: Struct) -> None:
        """Send a frame after all that was sent, and answered, of this session."""
        self._outbox.put(session_id, self._outbox.codec.encode(frame))

    def holds(self, session_id: str) -> bool:
        """Say whether it holds a turn of a session."""
        return any(one.session_id == session_id for one in self._attachments.values())

    def weigh(self) -> None:
        """Let the turns go that it may not run any more (SPEC 7.16)."""
        for attachment in list(self._attachments.values()):
            attachment.weigh()

    def forget(self, channel: int) -> None:
        """Let an attachment go that is over; what still comes for it is dropped."""
        self._attachments.pop(channel, None)

    def take(self, frame: WorkerFrame | BadWrite, size: int) -> None:
        """Take a frame of so many bytes; one of a channel that is over crossed with the news of it."""
        attachment = self._attachments.get(frame.channel)
        if attachment is not None:
            attachment.take(frame, size)

    def give_up(self, channel: int) -> None:
        """Give a turn up to others.

        Raises:
            NotFound: the channel is not one of an attachment that is held.

        """
        attachment = self._attachments.get(channel)
        if attachment is None:
            raise NotFound("attachment", str(channel))
        attachment.give_up()

    def gone(self) -> None:
        """End every attachment, because the connection is gone."""
        self.is_gone = True
        for attachment in list(self._attachments.values()):
            attachment.lost()
