"""The calls that are to no loaded session: create and list (SPEC 7)."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
from msgspec import UNSET, Meta

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
from midstream.protocol.values import MAX_INTEGER
from midstream.server.sessions.access import SessionRef, check_create
from midstream.server.storage import listing, store
from midstream.server.storage.records import LedgerRow

if TYPE_CHECKING:
    import apsw

    from midstream.protocol.values import Value
    from midstream.server.sessions.commands import Command
    from midstream.server.sessions.services import Services


_Place = tuple[Annotated[int, Meta(ge=0, le=MAX_INTEGER)], str]
"""Where a page of sessions ended: the time and the number of its last."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a repeat of a call recognisable: the id that was asked for, the key, and the content."""

    asked_id: str | None
    key: str | None
    content: str
    owner: str | None = None
    """Whose request it is: a key is good for one subject."""

    @property
    def stored_key(self) -> str | None:
        """The key, told from that of every other subject."""
        if self.key is None or self.owner is None:
            return self.key
        return f"\x1f{len(self.owner)}:{self.owner}{self.key}"


class Directory:
    """Makes sessions and lists them. Works on the store alone."""

    def __init__(self, services: Services) -> None:
        """Use the services' database."""
        self._services = services

    async def answer(self, command: Command) -> msgspec.Struct:
        """Carry out ``sessions.create``, ``sessions.list``, or the reading of ``sessions.watch``."""
        if command.method == "sessions.create":
            return await self.create(command)
        if command.method in {"sessions.list", "sessions.watch"}:
            return await self.list(command)
        raise UnknownMethod(command.method)

    async def create(self, command: Command) -> calls.SessionResult:
        """Make a session, or return the one that the same key and content made.

        Raises:
            Forbidden: the caller may not choose this id, or leave the choice to the server.
            AlreadyExists: the id is taken, or was.
            IdempotencyConflict: the key was used with other content.

        """
        params = cast("calls.CreateParams", command.params)
        now = self._services.clock.wall_ms()
        request = request_of(self._services, command, params.session_id, params.key, "session_id")
        session = new_session(
            request.asked_id or self._services.ids.new("ses"),
            now,
            title=params.title,
            metadata=params.metadata,
        )
        ledger = new_ledger(self._services, now)
        result = await self._services.database.write(
            partial(_make_or_find, session=session, ledger=ledger, request=request)
        )
        # told also where it was found: the call that made it may not have learned that it did
        self._services.owners.learn(result.session.session_id, request.owner)
        self._services.watch.note(result.session)
        return result

    async def list(self, command: Command) -> calls.ListResult:
        """Return a page of sessions, the last changed first.

        They are as they are now: nothing of a session's own fields is seen before it is stored.
        """
        params = cast("calls.ListParams | calls.WatchParams", command.params)
        after = UNSET if isinstance(params, calls.WatchParams) else params.after
        authorization, identity = self._services.authorization, command.caller.identity
        items, following = await self._services.database.read(
            partial(
                listing.list_sessions,
                limit=params.limit,
                after=None if after is UNSET else _read_place(after),
                archived=params.archived,
                selection=authorization.selection(identity),
                shows=lambda session_id, owner: authorization.authorize(
                    identity, "read", SessionRef(session_id, owner)
                ),
            )
        )
        return calls.ListResult(
            items=items, next_after=UNSET if following is None else _write_place(following)
        )


def request_of(
    services: Services,
    command: Command,
    asked_id: str | msgspec.UnsetType,
    key: str | msgspec.UnsetType,
    field: str,
) -> Request:
    """Return what makes a repeat of a call that makes a session recognisable; ``field`` has the asked id.

    Raises:
        Forbidden: the caller may not choose this id, or leave the choice to the server.

    """
    identity = command.caller.identity
    check_create(services.authorization, identity, asked_id or None, field)
    return Request(
        asked_id=asked_id or None, key=key or None, content=request_hash(command), owner=identity.owner
    )


def request_hash(command: Command) -> str:
    """Return what a repeat with the same key must equal: the method and what was sent."""
    return content_hash({"method": command.method, "params": command.as_sent})


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


def find_made(connection: apsw.Connection, request: Request) -> calls.SessionResult | None:
    """Return the session that the same request made before, as it is stored; None where it may make one.

    Raises:
        AlreadyExists: the id is taken, or was.
        IdempotencyConflict: the key was used with other content.
        Refused: the fork of this key is being made.

    """
    for session_id, status, key, content in store.find_created(
        connection, session_id=request.asked_id, key=request.stored_key
    ):
        if request.key is None or key != request.stored_key:
            raise AlreadyExists(session_id)
        if content != request.content or status == "deleted":
            raise IdempotencyConflict("key", request.key)
        if status != "live":
            raise Refused("forking", "This fork is being made. Send the call again in a moment.")
        return _result(connection, session_id)
    return None


def insert_or_find(
    connection: apsw.Connection,
    session: Session,
    ledger: LedgerRow,
    *,
    request: Request,
    status: str = "live",
) -> int | None:
    """Insert a session and return its number; None where the same request made it. Raises as find_made."""
    if find_made(connection, request) is not None:
        return None
    return store.create_session(
        connection,
        session,
        ledger,
        status=status,
        owner=request.owner,
        key=request.stored_key,
        content_hash=request.content,
    )


def _make_or_find(
    connection: apsw.Connection, session: Session, ledger: LedgerRow, *, request: Request
) -> calls.SessionResult:
    """Insert a session, or find the one that the same request made: in one job, before it can be deleted."""
    insert_or_find(connection, session, ledger, request=request)
    return created(connection, session_id=session.session_id, request=request)


def created(connection: apsw.Connection, *, session_id: str, request: Request) -> calls.SessionResult:
    """Return the session that the request made, now or before, as it is stored."""
    made = find_made(connection, request) if request.key is not None else None
    return made or _result(connection, session_id)


def _result(connection: apsw.Connection, session_id: str) -> calls.SessionResult:
    loaded = store.load_session(connection, session_id)
    if loaded is None:  # deleted since
        raise AlreadyExists(session_id)
    return calls.SessionResult(
        session=loaded.session, epoch=loaded.ledger.epoch, version=loaded.ledger.version
    )


def _write_place(place: tuple[int, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_place(text: str) -> tuple[int, str]:
    try:
        time, session_id = msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Place)
    except ValueError as error:
        raise InvalidRequest("after", "is not a place in the list; give the next_after of a page") from error
    return time, session_id
