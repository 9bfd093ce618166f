"""Pages, syncs and digests: what is read of a session, the live state laid over the store (SPEC 5, 7).

All of it runs inside the session's loop, between two changes, so what is read is one version.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from msgspec import UNSET, Raw

from midstream.protocol.agents import Context
from midstream.protocol.calls import Cursor, MessagesParams, Page, VerifyParams, VerifyResult
from midstream.protocol.digest import message_digest
from midstream.protocol.errors import NotFound
from midstream.protocol.frames import MessageEntry, SyncPayload
from midstream.server.sessions.entries import entry
from midstream.server.sessions.segments import Segment, segment_of, within
from midstream.server.storage import messages, rows, store, summaries
from midstream.server.storage.records import View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    import apsw
    from msgspec import UnsetType

    from midstream.protocol.limits import Limits
    from midstream.protocol.model import InteractionPart, Message, Summary, Turn
    from midstream.server.sessions.projection import Projection
    from midstream.server.sessions.shelf import Shelf
    from midstream.server.sessions.stream import Stream
    from midstream.server.storage.database import Database
    from midstream.server.storage.records import InputRow, StoredMessage

P = TypeVar("P", bound="SyncPayload | None")
_CATCHUP_TURNS = 1_000
"""Turns of a catch-up beyond which a reset is cheaper."""


class _StoredPage(NamedTuple):
    """Messages, ascending, whether more are below them, and their turns by id; parts and turns encoded."""

    messages: list[Message]
    more: bool
    turns: dict[str, bytes]


class Reading:
    """Reads of one loaded session."""

    __slots__ = ("_database", "_limits", "_session_no", "_shelf", "_stream")

    def __init__(
        self, database: Database, session_no: int, stream: Stream, limits: Limits, shelf: Shelf
    ) -> None:
        """Read from ``database`` what ``stream`` does not hold, and share what is read on the ``shelf``."""
        self._database = database
        self._shelf = shelf
        self._session_no = session_no
        self._stream = stream
        self._limits = limits

    async def page(self, params: MessagesParams) -> Page:
        """Return a page (SPEC 7, ``messages``)."""
        view = self._view(include_internal=params.include_internal)
        segment = await self._segment(view, params.before_sequence) if params.segment else None
        stored = await self._stored_page(
            within(view, segment),
            before=None if params.before_sequence is UNSET else params.before_sequence,
            limit=params.limit,
        )
        items, cut = (stored.messages, stored.more) if params.stored else self._live(stored)
        below = items[0].sequence if cut else UNSET
        if segment is not None and segment.has_earlier and not cut:
            below = segment.start
        return Page(
            items=items,
            total=self._projection.session.message_count,
            start_sequence=items[0].sequence if items else UNSET,
            end_sequence=items[-1].sequence if items else UNSET,
            next_before_sequence=below,
            has_more=below is not UNSET,
            include_internal=params.include_internal,
            before_sequence=params.before_sequence,
            turns=self._turns_of(items, stored.turns),
            epoch=self._stream.versions.epoch,
            version=self._stream.versions.durable if params.stored else self._stream.versions.published,
            source=UNSET if segment is None else segment.source,
            summary=UNSET if segment is None else segment.summary or UNSET,
            cut=cut and segment is not None,
        )

    async def sync(self, cursor: Cursor | None, *, limit: int, include_internal: bool) -> SyncPayload:
        """Return what brings a reader at ``cursor`` up to now, in the cheapest way there is (SPEC 5).

        Who asks for the same while the session stands still gets the same, and nothing is read for it.
        """
        if cursor is not None:
            asked = cursor.epoch, cursor.version, cursor.durable, include_internal
            found = await self._shared(
                asked, partial(self._missed, cursor, include_internal=include_internal)
            )
            if found is not None:
                return found
        return await self._shared(
            (limit, include_internal), partial(self._reset, limit=limit, include_internal=include_internal)
        )

    async def _shared(self, asked: Hashable, read: Callable[[], Awaitable[P]]) -> SyncPayload | P:
        """Return what was read for the same question at the same state, else read."""
        session, stamp = self._stream.channel, self._stamp()
        found = self._shelf.find(session, stamp, asked)
        if found is not None:
            return found
        payload = await read()
        if payload is None or self._stamp() != stamp:
            return payload
        return self._shelf.keep(session, stamp, asked, payload)

    def _stamp(self) -> tuple[str, int, int]:
        """Return what everything that is read depends on."""
        versions = self._stream.versions
        return versions.epoch, versions.published, versions.durable

    async def _missed(self, cursor: Cursor, *, include_internal: bool) -> SyncPayload | None:
        """Return what a reader missed; None where only a reset helps."""
        replay = self._stream.replay(cursor, include_internal=include_internal)
        if replay is not None or not await self._lies_in_known_epoch(cursor):
            return replay
        return await self._catchup(cursor.version, include_internal=include_internal)

    async def message(self, message_id: str, *, include_internal: bool) -> Message:
        """Return one message as it is now. Raises NotFound."""
        found = await self._database.read(
            partial(
                messages.message_by_id,
                view=self._view(include_internal=include_internal),
                message_id=message_id,
            )
        )
        if found is None:
            raise NotFound("message", message_id)
        return self._projection.overlay(found.head)

    async def turn(self, turn_id: str) -> Turn | None:
        """Return a turn; for ``current`` the running one, or None. Raises NotFound."""
        running = self._projection.turn
        if turn_id == "current" or (running is not None and running.turn_id == turn_id):
            return running
        found = await self._database.read(
            partial(messages.turns_by_id, session_no=self._session_no, turn_ids=[turn_id])
        )
        if not found:
            raise NotFound("turn", turn_id)
        return found[0]

    async def summary_through(self, sequence: int) -> Summary | None:
        """Return the summary that closes with a message, if there is one."""
        read = partial(summaries.covering, view=self._view(), sequence=sequence)
        found = await self._database.read(read)
        return found if found is not None and found.through_sequence == sequence else None

    async def context(self, limit: int | None) -> Context:
        """Return the last summary, and the newest messages behind it, or all, as an agent is to see them.

        Internal ones are included. They may be all of a long conversation, so they are decoded where they
        are read, off the event loop.
        """
        session = self._projection.session
        through = session.summarized_through
        summary = await self.summary_through(through) if through else None
        start = max(session.first_sequence, session.summarized_through + 1)
        # sequences have no holes, and an agent sees every one
        start = start if limit is None else max(start, session.message_count - limit + 1)
        read = self._span(start, 2**62)
        opened = self._projection.open
        found = await self._database.read(
            lambda connection: [rows.whole_message(one) for one in read(connection)]
        )
        newest = [
            rows.copied(opened[one.sequence].live.message()) if one.sequence in opened else one
            for one in found
        ]
        return Context(summary=summary, messages=newest)

    async def prompt(self, turn_id: str) -> Message:
        """Return the user's message that started a turn which still runs."""
        found = await self._database.read(
            partial(messages.prompt_of, view=self._view(include_internal=False), turn_id=turn_id)
        )
        if found is None:
            message = f"turn {turn_id} has no prompt"
            raise RuntimeError(message)
        return rows.whole_message(found)

    async def finished_messages(self, first: int, count: int) -> list[Message]:
        """Return messages that nothing changes any more, by their sequences."""
        read = self._span(first, first + count - 1)
        return await self._database.read(
            lambda connection: [rows.whole_message(one) for one in read(connection)]
        )

    async def input(self, message_id: str) -> tuple[InputRow | None, bool]:
        """Return the accepted input of this id, and whether any message has the id."""
        return await self._database.read(
            partial(store.find_input, session_no=self._session_no, message_id=message_id)
        )

    async def closed_interaction(self, interaction_id: str) -> InteractionPart | None:
        """Return an interaction of a finished message, to tell its outcome."""
        return await self._database.read(
            partial(messages.find_interaction, view=self._view(), interaction_id=interaction_id)
        )

    async def digests(self, params: VerifyParams) -> VerifyResult:
        """Return the digests of a range of the live projection (SPEC 5, ``verify``).

        They are digested where they are read, off the event loop: a long message takes a while.
        """
        read = self._span(params.from_sequence, params.to_sequence, include_internal=params.include_internal)
        live = {number: one.live.message() for number, one in self._projection.open.items()}

        def digest(connection: apsw.Connection) -> list[tuple[int, int, str]]:
            whole = (live.get(one.head.sequence) or rows.whole_message(one) for one in read(connection))
            return [(one.sequence, one.revision, message_digest(one)) for one in whole]

        digests = await self._database.read(digest)
        versions = self._stream.versions
        return VerifyResult(version=versions.published, epoch=versions.epoch, digests=digests)

    @property
    def _projection(self) -> Projection:
        return self._stream.projection

    def _view(self, *, include_internal: bool = True) -> View:
        session = self._projection.session
        return View(
            session_no=self._session_no,
            session_id=session.session_id,
            first=session.first_sequence,
            include_internal=include_internal,
        )

    def _span(
        self, start: int, end: int, *, include_internal: bool = True
    ) -> Callable[[apsw.Connection], list[StoredMessage]]:
        return partial(
            messages.span, view=self._view(include_internal=include_internal), start=start, end=end
        )

    async def _segment(self, view: View, before: int | UnsetType) -> Segment:
        session = self._projection.session
        return await self._database.read(partial(segment_of, view=view, session=session, before=before))

    async def _stored_page(self, view: View, *, before: int | None, limit: int) -> _StoredPage:
        most = self._limits.page_bytes

        def read(connection: apsw.Connection) -> _StoredPage:
            found, more = messages.page(connection, view, before=before, limit=limit, max_bytes=most)
            turn_ids = dict.fromkeys([one.turn_id for one in found if one.turn_id is not UNSET])
            turns = messages.stored_turns(connection, view.session_no, [*turn_ids])
            return _StoredPage(found, more, turns)

        return await self._database.read(read)

    def _live(self, stored: _StoredPage) -> tuple[list[Message], bool]:
        """Return a page as it is now; its bytes end it where it is longer than what is stored (SPEC 7.3)."""
        found, opened = stored.messages, self._projection.open
        if not opened:
            return found, stored.more
        size, more = 0, stored.more
        for index in reversed(range(len(found))):
            live = opened.get(found[index].sequence)
            size += messages.size_of(found[index]) if live is None else sum(live.sizes)
            if size > self._limits.page_bytes and index < len(found) - 1:
                found, more = found[index + 1 :], True
                break
        return [self._projection.overlay(one) for one in found], more

    def _turns_of(self, items: list[Message], stored: dict[str, bytes]) -> list[Turn]:
        """Return the turns of these messages, as they are stored, and the running one, live."""
        running = self._projection.turn
        wanted = dict.fromkeys([item.turn_id for item in items if item.turn_id is not UNSET])
        if running is not None:
            wanted.pop(running.turn_id, None)
        turns = cast("list[Turn]", [Raw(stored[key]) for key in wanted if key in stored])
        return turns if running is None else [*turns, running]

    async def _lies_in_known_epoch(self, cursor: Cursor) -> bool:
        versions = self._stream.versions
        if cursor.version < versions.cleared:
            return False
        if cursor.epoch == versions.epoch:
            return cursor.version <= versions.published and cursor.durable <= versions.durable
        ended = await self._database.read(
            partial(store.epoch_end, session_no=self._session_no, epoch=cursor.epoch)
        )
        return ended is not None and cursor.version <= ended.version and cursor.durable <= ended.commit

    async def _catchup(self, since: int, *, include_internal: bool) -> SyncPayload | None:
        """Return all that is above ``since``; None where that is more than a sync may carry."""
        projection, versions = self._projection, self._stream.versions
        found = await self._database.read(
            partial(
                messages.changed_since,
                view=self._view(include_internal=include_internal),
                version=since,
                max_messages=self._limits.page_messages,
                max_bytes=self._limits.page_bytes,
                always=[number for number, one in projection.open.items() if one.head.revision > since],
            )
        )
        turns = await self._database.read(
            partial(messages.turns_since, session_no=self._session_no, version=since, limit=_CATCHUP_TURNS)
        )
        live = sum(one.size_since(since) for one in projection.open.values())
        if found is None or turns is None or live > self._limits.page_bytes:
            return None
        running = projection.turn
        if running is not None:
            turns = [turn for turn in turns if turn.turn_id != running.turn_id]
            turns += [running] if running.revision > since else []
        return SyncPayload(
            mode="catchup",
            from_version=since,
            epoch=versions.epoch,
            version=versions.published,
            durable=UNSET if versions.durable == versions.published else versions.durable,
            session=projection.session if projection.session.revision > since else UNSET,
            turns=turns,
            messages=[self._entry_since(one, since) for one in found],
        )

    def _entry_since(self, stored: StoredMessage, since: int) -> MessageEntry:
        live = self._projection.open.get(stored.head.sequence)
        message = stored.head if live is None else live.live.message()
        revisions = stored.part_revisions if live is None else live.part_revisions
        return entry(
            message,
            [part for part, revision in zip(message.parts, revisions, strict=True) if revision > since],
            part_count=len(revisions),
            is_new=stored.created_version > since,
            version=self._stream.versions.published,
        )

    async def _reset(self, *, limit: int, include_internal: bool) -> SyncPayload:
        projection, versions = self._projection, self._stream.versions
        # without a limit one message is read all the same, to say whether there are any
        view = self._view(include_internal=include_internal)
        stored = await self._stored_page(view, before=None, limit=limit or 1)
        items, more = ([], bool(stored.messages)) if limit == 0 else self._live(stored)
        return SyncPayload(
            mode="reset",
            epoch=versions.epoch,
            version=versions.published,
            durable=UNSET if versions.durable == versions.published else versions.durable,
            session=projection.session,
            turns=self._turns_of(items, stored.turns),
            messages=[
                entry(item, item.parts, part_count=len(item.parts), is_new=True, version=versions.published)
                for item in items
            ],
            next_before_sequence=items[0].sequence if items and more else UNSET,
            has_more=more,
        )
