"""Forks: a new session with copies of another one's messages (SPEC 10).

The copy is made batch by batch from one snapshot of the store, beside the source's loop, and
becomes visible as a whole with its last batch.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET, structs

from midstream.protocol import calls
from midstream.protocol.errors import Unavailable
from midstream.protocol.model import Message, Origin
from midstream.protocol.transitions import is_open
from midstream.server.sessions.directory import (
    Request,
    created,
    find_made,
    insert_or_find,
    new_ledger,
    new_session,
    request_of,
)
from midstream.server.sessions.endings import ended
from midstream.server.storage import messages, rows, store, summaries
from midstream.server.storage.database import SNAPSHOTS
from midstream.server.storage.errors import ReadFailed
from midstream.server.storage.records import MessageRow, PartRow, StoredMessage, View

if TYPE_CHECKING:
    import apsw

    from midstream.protocol.model import Session
    from midstream.server.sessions.commands import Caller, Command
    from midstream.server.sessions.loop import SessionLoop
    from midstream.server.sessions.services import Services
    from midstream.server.sessions.state import LoadedState
    from midstream.server.storage.database import Snapshot
    from midstream.server.storage.records import LoadedSession

_BATCH = 100
"""Messages of a batch: other sessions' commits pass between two."""
_BATCH_BYTES = 1024 * 1024
"""Bytes of messages after which a batch ends; it holds at least one."""

_SUMMARIES = 16
"""Summaries of a batch: each may be as long as a message."""
_AT_ONCE = SNAPSHOTS
"""Forks at a time; others wait here, where they hold up nobody."""


class Forks:
    """Makes forks."""

    def __init__(
        self,
        services: Services,
        loop_of: Callable[[str], SessionLoop],
        check_source: Callable[[Caller, str], Awaitable[None]],
    ) -> None:
        """Copy from the loops that ``loop_of`` finds, where ``check_source`` does not raise."""
        self._services = services
        self._check_source = check_source
        self._loop_of = loop_of
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._stopping = False

    def stop(self) -> None:
        """Give up the forks that are being made, each behind its present batch: the server stops."""
        self._stopping = True

    async def fork(self, command: Command) -> msgspec.Struct:
        """Copy a session up to and with a message, or all of it.

        Raises:
            Forbidden: the caller may not choose the new id, or leave the choice to the server.
            NotFound: there is no such session or message.
            AlreadyExists: the new id is taken, or was.
            IdempotencyConflict: the key was used with other content.
            Unavailable: the server stops.

        """
        params = cast("calls.ForkParams", command.params)
        request = request_of(self._services, command, params.new_session_id, params.key, "new_session_id")
        # by the writer, so that a removal that it does not see is told after it
        made = await self._services.database.write(partial(find_made, request=request))
        if made is not None:  # also where the source is gone by now
            self._services.owners.learn(made.session.session_id, request.owner)
            self._services.watch.note(made.session)
            return made
        await self._check_source(command.caller, params.session_id)
        # a slot first: a loop that waited for a snapshot would hold up its session
        async with self._slots, contextlib.AsyncExitStack() as stack:

            async def hold(state: LoadedState) -> tuple[Snapshot, Source]:
                """Hold the store and the live messages at one version."""
                await state.flush()
                last = None
                try:
                    snapshot = await stack.enter_async_context(self._services.database.snapshot())
                    if params.message_id is not UNSET:
                        through = await state.reading.message(params.message_id, include_internal=True)
                        last = through.sequence
                except ReadFailed as error:
                    # to the source nothing happened: its loop goes on, and with it the turn that runs
                    raise Unavailable(f"The session's storage failed: {error}") from error
                # not the clock's time: the copies may be later than that, and times never go back
                now = state.versions.stamp(self._services.clock.wall_ms())
                return snapshot, Source(state, last, now=now)

            snapshot, source = await self._loop_of(params.session_id).perform(hold)
            return await self._copy(params, request, snapshot, source)

    async def _copy(
        self, params: calls.ForkParams, request: Request, snapshot: Snapshot, source: Source
    ) -> calls.SessionResult:
        session = new_session(
            request.asked_id or self._services.ids.new("ses"),
            source.now,
            title=source.session.title if params.title is UNSET else params.title,
            metadata=source.session.metadata,
            first_sequence=source.first,
            message_count=source.last,
        )
        database = self._services.database
        session_no = await database.write(
            partial(
                insert_or_find,
                session=session,
                ledger=new_ledger(self._services, source.now),
                request=request,
                status="forking",
            )
        )
        if session_no is not None:
            try:
                await self._fill(session_no, session, snapshot, source)
            except BaseException:
                self._services.purge(session_no)
                raise
        return await database.read(partial(created, session_id=session.session_id, request=request))

    async def _fill(self, session_no: int, session: Session, snapshot: Snapshot, source: Source) -> None:
        """Copy the messages, then show the session."""
        view = View(session_no=source.session_no, session_id=source.session.session_id)
        start = source.first
        while start <= source.last:
            if self._stopping:
                raise Unavailable("The server stops, so nothing was copied. Send the call again in a moment.")
            end = min(start + _BATCH - 1, source.last)
            read = partial(messages.span, view=view, start=start, end=end, max_bytes=_BATCH_BYTES)

            def copy(
                connection: apsw.Connection, read: Callable[..., list[StoredMessage]] = read
            ) -> tuple[int, Callable[..., None]]:
                # where it is read, off the event loop: a batch may have a megabyte to be decoded and encoded
                copies = [self._copied(source.whole(one), session) for one in read(connection)]
                return len(copies), _batch_of(session_no, copies)

            count, write = await snapshot.read(copy)
            await self._services.database.write(write)
            start += count
        await self._copy_summaries(session_no, view, snapshot, source)
        shown = await self._services.database.write(
            partial(_show, session_no=session_no, session_id=session.session_id)
        )
        if shown is not None:
            self._services.owners.learn(session.session_id, shown.owner)
            self._services.watch.note(shown.session)

    async def _copy_summaries(self, session_no: int, view: View, snapshot: Snapshot, source: Source) -> None:
        """Copy the summaries whose segments lie in the copy, and let the session say how far they go."""
        start = source.first
        while start <= source.last:
            read = partial(
                summaries.between,
                view=structs.replace(view, first=source.first),
                start=start,
                end=source.last,
                limit=_SUMMARIES,
            )
            found = await snapshot.read(read)
            if not found:
                break
            await self._services.database.write(
                partial(summaries.write_forked, session_no=session_no, summaries=found)
            )
            start = found[-1].through_sequence + 1

    def _copied(self, message: Message, session: Session) -> Message:
        ids = self._services.ids
        parts = [
            ended(part, now=session.created_at, reason="runtime_interrupted", why="forked")
            if is_open(part)
            else part
            for part in message.parts
        ]
        return structs.replace(
            message,
            message_id=ids.new("msg"),
            session_id=session.session_id,
            turn_id=UNSET,
            revision=1,
            origin=Origin(
                session_id=message.session_id, message_id=message.message_id, turn_id=message.turn_id
            ),
            state="done" if message.role == "agent" else UNSET,
            parts=[structs.replace(part, part_id=ids.new("part")) for part in parts],
        )


class Source:
    """What is copied: the session at one version, its live messages held."""

    def __init__(self, state: LoadedState, last: int | None, *, now: int) -> None:
        """Hold the live messages of a loaded session as of ``now``; copy up to ``last``, or all."""
        self.now = now
        self.session = state.projection.session
        self.session_no = state.session_no
        self.first = self.session.first_sequence
        self.last = self.session.message_count if last is None else last
        self._live = {number: one.live.message() for number, one in state.projection.open.items()}

    def whole(self, stored: StoredMessage) -> Message:
        """Return a message as it was when the fork began."""
        live = self._live.get(stored.head.sequence)
        return rows.whole_message(stored) if live is None else live


def _show(connection: apsw.Connection, *, session_no: int, session_id: str) -> LoadedSession | None:
    """Make a fork visible, and return it as it is then."""
    store.show_forked(connection, session_no)
    return store.load_session(connection, session_id)


def _batch_of(session_no: int, copies: list[Message]) -> Callable[..., None]:
    heads = [
        MessageRow(
            head=structs.replace(copy, parts=[]),
            created_version=1,
            part_count=len(copy.parts),
            is_open=False,
            drops=False,
        )
        for copy in copies
    ]
    parts: list[PartRow] = [
        (copy.sequence, part.sequence, 1, rows.encode(part)) for copy in copies for part in copy.parts
    ]
    return partial(store.write_forked, session_no=session_no, messages=heads, parts=parts)
