"""Laws of the list and its watch on one process's sessions (SPEC 7.11)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from midstream.protocol.calls import ArchiveParams, CreateParams, ListResult, SessionResult, WatchParams
from midstream.protocol.lists import ListChanges
from midstream.protocol.model import Session
from midstream.server.sessions.bulletin import Bulletin
from midstream.server.sessions.commands import Caller
from tests.disk import Fault, broken_disk
from tests.server.sessions.house import House, Street, in_simulation, refusal


class Ear:
    """Somebody who watches, without a connection."""

    def __init__(self, *, room: int = 1_000) -> None:
        self.caller = Caller(subject="ann", connection_id="c")
        self.heard: list[ListChanges] = []
        self.bulletins: list[Bulletin] = []
        self.cuts = 0
        self.room = room

    def tell(self, news: Sequence[Bulletin]) -> bool:
        """Hear news, while there is room."""
        self.bulletins += news
        self.heard += [bulletin.frame.changes for bulletin in news]
        return len(self.heard) < self.room

    def cut(self) -> None:
        """Hear that something was left out."""
        self.cuts += 1

    @property
    def changed(self) -> list[Session]:
        """All that was told to have changed."""
        return [session for changes in self.heard for session in changes.changed]


def ear_of(house: House, **options: int) -> Ear:
    """Somebody who has begun to watch."""
    ear = Ear(**options)
    house.services.watch.join(ear)
    house.services.watch.begin(ear)
    return ear


@in_simulation
async def test_what_is_told_of_a_new_session_is_what_is_stored(street: Street) -> None:
    """It is noted as it was made, not read again: the two must be equal."""
    async with street.house() as house:
        ear = ear_of(house)
        params = CreateParams(session_id="s", title="T", metadata={"a": 1})
        made = await house.call(SessionResult, "sessions.create", params)
        await house.settled()
        listed = await house.call(ListResult, "sessions.list", WatchParams())
        assert ear.changed == listed.items == [made.session]


@in_simulation
async def test_where_nobody_watches_nothing_is_kept(street: Street) -> None:
    """Neither before the first nor after the last, and a change costs one look."""
    async with street.house() as house:
        watch = house.services.watch
        await house.create()
        assert watch.watchers == 0
        ear, other = ear_of(house), ear_of(house)
        await house.call(SessionResult, "sessions.archive", ArchiveParams(session_id="s"))
        for one in (ear, other, other):
            watch.leave(one)
        later = Ear()
        watch.join(later)
        watch.begin(later)
        await house.settled()
        assert later.heard == []
        assert watch.watchers == 1


@in_simulation
async def test_those_who_watch_get_the_same_bytes(street: Street) -> None:
    """One bulletin for all."""
    async with street.house() as house:
        ears = [ear_of(house) for _ in range(3)]
        await house.create()
        await house.settled()
        (first,) = ears[0].bulletins
        assert all(ear.bulletins == [first] for ear in ears)


@in_simulation
async def test_one_without_room_is_told_nothing_any_more_and_the_others_are(street: Street) -> None:
    """It costs nothing from there on."""
    async with street.house() as house:
        slow, other = ear_of(house, room=1), ear_of(house)
        await house.create()
        await house.settled()
        await house.call(SessionResult, "sessions.archive", ArchiveParams(session_id="s"))
        await asyncio.sleep(0.2)
        assert (len(slow.heard), len(other.heard)) == (1, 2)
        assert house.services.watch.watchers == 1


@in_simulation
async def test_where_too_much_changes_everybody_is_cut_also_those_who_join(street: Street) -> None:
    """Nobody goes on with a list that is not whole."""
    async with street.house() as house:
        watch = house.services.watch
        ear, joining = ear_of(house), Ear()
        watch.join(joining)
        session = (await house.create()).session
        for number in range(5_000):
            watch.note(
                Session(session_id=f"{number}", revision=1, created_at=1, updated_at=1, message_count=0)
            )
        watch.begin(joining)
        await house.settled()
        assert (ear.cuts, joining.cuts, watch.watchers) == (1, 1, 0)
        assert session.session_id == "s"


@in_simulation
async def test_a_session_that_may_have_been_made_though_its_commit_failed_is_looked_for(
    street: Street,
) -> None:
    """It is not known whether it is there, so everybody who watches must ask."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            ear = ear_of(house)
            disk.fail(Fault.WRITE_ERROR)
            params = CreateParams(session_id="s")
            error = await refusal(house.call(SessionResult, "sessions.create", params))
            disk.repair()
            assert error.code == "unavailable"
            assert ear.cuts == 1
