"""The law of exports: whatever happened to a session, an import of its export is the same session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from midstream.protocol.digest import message_digest
from midstream.protocol.export import Entity, Header
from midstream.protocol.model import Message
from midstream.server.storage import listing
from tests.laws.case import Case, Playing
from tests.laws.mutations import MUTATIONS
from tests.laws.scene import Scene
from tests.laws.world import World, pause, play
from tests.server.sessions.importing import bring, held, opened, written

if TYPE_CHECKING:
    import apsw

    from midstream.server.storage.database import Database


@pytest.mark.parametrize("case", MUTATIONS.values(), ids=MUTATIONS)
def test_an_export_of_an_import_is_the_export(case: Case, tmp_path: Path) -> None:
    """Byte for byte where nothing runs, else from the first import on; also once the server has stopped."""

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        playing = Playing(case, scene)
        await playing.before()
        await playing.change()
        await pause()
        await hold(world.database, tmp_path / "running.db")
        await world.stop()
        async with opened(world.path) as stopped:
            await hold(stopped, tmp_path / "stopped.db")

    play(story, tmp_path)


async def hold(database: Database, path: Path) -> None:
    """Bring every session of a database into another one, twice."""
    for session_id in await database.read(names):
        before = await held(database, session_id)
        async with opened(path) as other:
            await bring(other, written(before), session_id)
            after = await held(other, session_id)
            again = f"{session_id} again"
            await bring(other, written(after), again)
            assert written(await held(other, again)) == renamed_lines(after, session_id, again)
        if runs_nothing(before):
            assert written(after) == written(before)
        else:
            assert same_digests(before, after) >= 2  # of the turn that every scene begins with


def names(connection: apsw.Connection) -> list[str]:
    """The sessions that can be seen."""
    found: list[str] = []
    for archived in (False, True):
        listed, _ = listing.list_sessions(connection, limit=200, after=None, archived=archived)
        found += [session.session_id for session in listed]
    return found


def renamed_lines(entities: list[Entity], session_id: str, name: str) -> list[bytes]:
    """The lines of a session under another id."""
    old, new = (f'"session_id":"{one}"'.encode() for one in (session_id, name))
    return [line.replace(old, new, 1) for line in written(entities)]


def runs_nothing(entities: list[Entity]) -> bool:
    """Whether nothing of the session is open."""
    header = entities[0]
    assert isinstance(header, Header)
    session = header.session
    return not (session.running_turn_id or session.queue or session.pending_interactions)


def same_digests(before: list[Entity], after: list[Entity]) -> int:
    """How many messages the import did not have to change; all of them are there."""
    pairs = zip(
        (one for one in before if isinstance(one, Message)),
        (one for one in after if isinstance(one, Message)),
        strict=True,
    )
    return sum(message_digest(old) == message_digest(new) for old, new in pairs)
