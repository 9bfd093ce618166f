"""The calls that are to no loaded session: create and list (SPEC 7)."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.digest import content_hash
from midstream.protocol.errors import (
    AlreadyExists,
    IdempotencyConflict,
    InvalidRequest,
    Refused,
    UnknownMethod,
)
from midstream.protocol.model import Session
from midstream.server.storage import messages, store
from midstream.server.storage.records import LedgerRow

if TYPE_CHECKING:
    import apsw

    from midstream.protocol.values import Value
    from midstream.server.sessions.commands import Command
    from midstream.server.sessions.services import Services


class Directory:
    """Makes sessions and lists them. Works on the store alone."""

    def __init__(self, services: Services) -> None:
        """Use the services' database."""
        self._services = services

    async def answer(self, command: Command) -> msgspec.Struct:
        """Carry out ``sessions.create`` or ``sessions.list``."""
        if command.method == "sessions.create":
            return await self.create(command)
        if command.method == "sessions.list":
            return await self.list(cast("calls.ListParams", command.params))
        raise UnknownMethod(command.method)

    async def create(self, command: Command) -> calls.SessionResult:
        """Make a session, or return the one that the same key and content made.

        Raises:
            AlreadyExists: the id is taken, or was.
            IdempotencyConflict: the key was used with other content.

        """
        params = cast("calls.CreateParams", command.params)
        now = self._services.clock.wall_ms()
        session = new_session(
            params.session_id or self._services.ids.new("ses"),
            now,
            title=params.title,
            metadata=params.metadata,
        )
        key = params.key or None
        await self._services.database.write(
            partial(
                insert_or_find,
                session=session,
                ledger=new_ledger(self._services, now),
                asked_id=params.session_id or None,
                key=key,
                content=content_hash(command.as_sent),
            )
        )
        return await self._services.database.read(partial(created, session_id=session.session_id, key=key))

    async def list(self, params: calls.ListParams) -> calls.ListResult:
        """Return a page of sessions, the last changed first."""
        after = None if params.after is UNSET else _read_place(params.after)
        items, following = await self._services.database.read(
            partial(messages.list_sessions, limit=params.limit, after=after, archived=params.archived)
        )
        return calls.ListResult(
            items=items, next_after=UNSET if following is None else _write_place(following)
        )


def new_session(
    session_id: str,
    now: int,
    *,
    title: str | msgspec.UnsetType,
    metadata: dict[str, Value],
    first_sequence: int = 1,
    message_count: int = 0,
) -> Session:
    """Return a session as it is made, at version 1."""
    return Session(
        session_id=session_id,
        revision=1,
        title=title,
        metadata=metadata,
        created_at=now,
        updated_at=now,
        first_sequence=first_sequence,
        message_count=message_count,
        queue=[],
        pending_interactions=0,
    )


def new_ledger(services: Services, now: int) -> LedgerRow:
    """Return the ledger of a session as it is made: clean, at version 1, in an epoch of its own."""
    return LedgerRow(
        version=1,
        ceiling=1,
        epoch=services.ids.epoch(),
        generation=services.database.generation,
        dirty=False,
        cleared_version=0,
        last_time=now,
    )


def insert_or_find(
    connection: apsw.Connection,
    session: Session,
    ledger: LedgerRow,
    *,
    asked_id: str | None,
    key: str | None,
    content: str,
    status: str = "live",
) -> int | None:
    """Insert a session and return its number; None where the same key and content made it before.

    Raises:
        AlreadyExists: the id is taken, or was.
        IdempotencyConflict: the key was used with other content.
        Refused: the fork of this key is being made.

    """
    for session_id, found_status, found_key, found_hash in store.find_created(
        connection, session_id=asked_id, key=key
    ):
        if key is not None and found_key == key:
            if found_hash != content or found_status == "deleted":
                raise IdempotencyConflict("key", key)
            if found_status != "live":
                raise Refused("forking", "This fork is being made. Send the call again in a moment.")
            return None
        raise AlreadyExists(session_id)
    return store.create_session(connection, session, ledger, status=status, key=key, content_hash=content)


def created(connection: apsw.Connection, *, session_id: str, key: str | None) -> calls.SessionResult:
    """Return the session of this key, or else of this id, as it is stored."""
    found = [row[0] for row in store.find_created(connection, session_id=None, key=key)] if key else []
    loaded = store.load_session(connection, found[0] if found else session_id)
    if loaded is None:
        raise AlreadyExists(session_id)
    return calls.SessionResult(
        session=loaded.session, epoch=loaded.ledger.epoch, version=loaded.ledger.version
    )


def _write_place(place: tuple[int, int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_place(text: str) -> tuple[int, int]:
    try:
        time, number = msgspec.json.decode(base64.urlsafe_b64decode(text), type=tuple[int, int])
    except ValueError as error:
        raise InvalidRequest("after", "is not a place in the list; give the next_after of a page") from error
    return time, number
