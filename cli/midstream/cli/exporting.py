"""Writes a session of a database file as lines of JSON, without its server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.cli.failure import MISUSED, CommandFailed
from midstream.cli.inspect import read_only
from midstream.protocol.export import write_line
from midstream.protocol.into_four_type import FourTypeWriter
from midstream.protocol.model import Message, Session
from midstream.server.storage import exports

if TYPE_CHECKING:
    from midstream.protocol.export import Entity
    from midstream.protocol.model import Summary, Turn


def export(path: Path, session_id: str) -> Iterator[bytes]:
    """Yield the lines of a session's export.

    Raises:
        CommandFailed: there is no such file or session.

    """
    with read_only(path) as connection:
        entities: Iterator[Entity] | None = exports.exported(connection, session_id)
        if entities is None:
            raise _unknown(session_id)
        yield from map(write_line, entities)


def export_four_type(path: Path, session_id: str, lost: Counter[str]) -> Iterator[bytes]:
    """Yield the lines of a session in the older form of four types; count in ``lost`` what it cannot say.

    Raises:
        CommandFailed: there is no such file or session.

    """
    with read_only(path) as connection:
        told: Iterator[Session | tuple[Message, Turn | None] | Summary] | None
        told = exports.conversation(connection, session_id)
        if told is None:
            raise _unknown(session_id)
        writer = FourTypeWriter()
        for one in told:
            if isinstance(one, Session):
                writer.session(one)
            elif isinstance(one, tuple):
                yield from writer.take(*one)
            else:
                writer.summary(one)
        yield from writer.finish()
        lost.update(writer.lost)


def _unknown(session_id: str) -> CommandFailed:
    return CommandFailed(f"There is no session {session_id!r} in this database.", code=MISUSED)
