"""Importing a session: what is open is ended, and nobody sees any of it before it is whole.

It goes in batch by batch, as a fork does, so that memory is bounded; a session that was not finished
is removed. An import runs no agent: nothing of it may have an effect twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, structs

from midstream.protocol.export import End, Header, Reader, RememberedInput
from midstream.protocol.four_type import REVISION, FourTypeReader
from midstream.protocol.lines import BadLine
from midstream.protocol.model import Message, Session, Summary, Turn
from midstream.protocol.transitions import is_open
from midstream.server.sessions.endings import ended
from midstream.server.sessions.recovery import INTERRUPTED
from midstream.server.storage import imports, store
from midstream.server.storage.imports import Content
from midstream.server.storage.records import LedgerRow

if TYPE_CHECKING:
    from midstream.protocol.export import Entity
    from midstream.server.storage.database import Database

_BATCH = 500
"""Entities that are stored at once."""
_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of lines after which a batch is stored."""


Read: TypeAlias = "tuple[int, int, Entity]"
"""The number of a line, its bytes, and what it holds."""


class _Closing:
    """Ends what is open, at one time and under one version above all others."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.version = 0
        """The version of what is imported; what is ended here gets the next."""
        self.closed = False

    def take(self, entity: Content) -> Content:
        """Return an entity as it is when nothing runs."""
        if isinstance(entity, Message):
            return self._message(entity)
        if isinstance(entity, Turn) and entity.state == "running":
            return structs.replace(
                entity, state="failed", error=INTERRUPTED, finished_at=self.now, revision=self._next()
            )
        if isinstance(entity, RememberedInput) and entity.state == "queued":
            self._next()
            return structs.replace(entity, state="cancelled", parts=UNSET)
        return entity

    def session(self, session: Session) -> Session:
        """Return the session without a running turn, a queue, or anything pending."""
        still = structs.replace(session, running_turn_id=UNSET, queue=[], pending_interactions=0)
        if still == session and not self.closed:
            return session
        return structs.replace(still, revision=self._next(), updated_at=max(session.updated_at, self.now))

    def _message(self, message: Message) -> Message:
        if message.state != "streaming" and not any(is_open(part) for part in message.parts):
            return message
        parts = [
            ended(part, now=self.now, reason="runtime_interrupted", why="runtime_interrupted")
            if is_open(part)
            else part
            for part in message.parts
        ]
        return structs.replace(message, state="done", parts=parts, revision=self._next(), updated_at=self.now)

    def _next(self) -> int:
        self.closed = True
        return self.version + 1


class Import:
    """One import of one session into a database that this process owns."""

    def __init__(self, database: Database, *, epoch: str, now: int, session_id: str | None = None) -> None:
        """Import at the server time ``now``, into ``session_id`` or the session that the lines name.

        ``epoch`` is that of the new life: cursors of the old one mean nothing here.
        """
        self._database = database
        self._epoch = epoch
        self._session_id = session_id
        self._closing = _Closing(now)
        self._latest = now
        self._session_no: int | None = None
        self._batch: list[tuple[int, Content]] = []

    async def run(self, lines: Iterable[bytes]) -> Session:
        """Import an export of midstream, and return the session as it is now.

        Raises:
            BadLine: a line is not what it must be. Nothing was imported.
            AlreadyExists: the session's id is taken, or was.

        """
        reader = Reader()
        return await self._store(_exported(lines, reader), reader)

    async def run_four_type(self, lines: Iterable[bytes]) -> Session:
        """Import the older form of four types; raises as :meth:`run`."""
        return await self._store(_older(lines, FourTypeReader(self._session_id)), None)

    async def _store(self, entities: Iterator[Read], reader: Reader | None) -> Session:
        try:
            header = await self._fill(entities)
            if reader is not None:
                await self._check_turns(reader)
            return await self._finish(header)
        except BaseException:
            await self._remove()
            raise

    async def _fill(self, entities: Iterator[Read]) -> Header:
        """Store all but the session's own fields, which may come first or last; return those."""
        header: Header | None = None
        size = 0
        for line, length, entity in entities:
            if isinstance(entity, Header):
                header = entity
                await self._begin(entity.session.session_id, entity.version)
            elif not isinstance(entity, End):
                if isinstance(entity, Message):
                    await self._begin(entity.session_id, REVISION)
                self._batch.append((line, self._taken(entity)))
                size += length
            if len(self._batch) >= _BATCH or size >= _BATCH_BYTES:
                await self._flush()
                size = 0
        await self._flush()
        if header is None:
            raise BadLine(1, "", "is missing: there is nothing to import")
        return header

    async def _check_turns(self, reader: Reader) -> None:
        read = partial(imports.find_message_without_turn, session_no=self._number())
        found = await self._database.read(read)
        if found is not None:
            line = reader.first_message_line + found - reader.header.session.first_sequence
            raise BadLine(line, "message.turn_id", "names a turn that is not in the file")

    async def _begin(self, session_id: str, version: int) -> None:
        if self._session_no is not None:
            return
        self._closing.version = version
        self._session_id = self._session_id or session_id
        session = Session(
            session_id=self._session_id, revision=0, created_at=0, updated_at=0, message_count=0
        )
        begin = partial(imports.begin, session=session, ledger=self._ledger(0))
        self._session_no = await self._database.write(begin)

    def _taken(self, entity: Content) -> Content:
        taken = self._closing.take(entity)
        if isinstance(taken, (Message, Summary)):
            self._latest = max(self._latest, taken.created_at)
        if isinstance(taken, Message):
            self._latest = max(self._latest, taken.updated_at)
        if isinstance(taken, Turn):
            self._latest = max(self._latest, taken.started_at, taken.phase_since)
            self._latest = max(self._latest, 0 if taken.finished_at is UNSET else taken.finished_at)
        return taken

    async def _flush(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            write = partial(imports.write_batch, session_no=self._number(), batch=batch)
            await self._database.write(write)

    async def _finish(self, header: Header) -> Session:
        session = structs.replace(
            self._closing.session(header.session),
            session_id=self._session_id or header.session.session_id,
        )
        self._latest = max(self._latest, session.updated_at, session.created_at)
        version = self._closing.version + (1 if self._closing.closed else 0)
        finish = partial(
            imports.finish, session_no=self._number(), session=session, ledger=self._ledger(version)
        )
        await self._database.write(finish)
        return session

    def _ledger(self, version: int) -> LedgerRow:
        return LedgerRow(
            version=version,
            ceiling=version,
            epoch=self._epoch,
            generation=self._database.generation,
            dirty=False,
            cleared_version=0,
            last_time=self._latest,
        )

    def _number(self) -> int:
        if self._session_no is None:
            message = "an entity came before its session was begun"
            raise RuntimeError(message)
        return self._session_no

    async def _remove(self) -> None:
        if self._session_no is not None:
            while await self._database.write(partial(store.purge, session_no=self._session_no)):
                pass


def _exported(lines: Iterable[bytes], reader: Reader) -> Iterator[Read]:
    for line in lines:
        entity = reader.take(line)
        yield reader.line, len(line), entity
    reader.finish()


def _older(lines: Iterable[bytes], reader: FourTypeReader) -> Iterator[Read]:
    for line in lines:
        for entity in reader.take(line):
            yield reader.line, len(line), entity
    entities, header = reader.finish()
    for last in (*entities, header):
        yield reader.line, 0, last
