"""The list of sessions (SPEC 4.8)."""

from msgspec import structs

from midstream.conformance.clients.conversation import BEGAN
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Peer
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.calls import ListResult
from midstream.protocol.frames import SessionsChanged
from midstream.protocol.lists import ListChanges
from midstream.protocol.model import Session

LIST = ["list"]


def one(session_id: str, revision: int, at: int | None = None) -> Session:
    """Return a session that changed at its revision, or at another time."""
    return Session(
        session_id=session_id,
        revision=revision,
        created_at=BEGAN,
        updated_at=BEGAN + (revision if at is None else at),
        message_count=0,
    )


async def watching(scene: Scene, *sessions: Session) -> Peer:
    """Let the client watch the list, which is this."""
    await scene.connect()
    await scene.tell("watch", limit=10)
    peer = await scene.peer()
    call = await scene.call(peer, "sessions.watch")
    await peer.answer(call, ListResult(items=list(sessions)))
    await is_list(scene, *sessions)
    return peer


async def is_list(scene: Scene, *sessions: Session) -> None:
    """Wait until the list is this, in this order."""
    expected = [(session.session_id, session.revision) for session in sessions]
    await scene.listed(lambda shown: shown.state == "live" and shown.items == expected, f"{expected}")


async def tell(peer: Peer, *changed: Session, removed: list[str] | None = None) -> None:
    """Tell what became of sessions."""
    await peer.send(SessionsChanged(ListChanges(changed=list(changed), removed=removed or [])))


@SUITE.case("listing.changes", "4.8", "G31", needs=LIST)
async def changes(scene: Scene) -> None:
    """Sessions that are told join, move to the top, and leave; the last changed is first."""
    peer = await watching(scene, one("b", 5), one("a", 3))
    await tell(peer, one("c", 7))
    await is_list(scene, one("c", 7), one("b", 5), one("a", 3))
    await tell(peer, one("a", 9), one("d", 9))
    await is_list(scene, one("a", 9), one("d", 9), one("c", 7), one("b", 5))
    await tell(peer, removed=["c", "unknown"])
    await is_list(scene, one("a", 9), one("d", 9), one("b", 5))


@SUITE.case("listing.older", "4.8", "R25", needs=LIST)
async def older(scene: Scene) -> None:
    """A copy of a lower revision does not replace a newer one, whatever its time says."""
    peer = await watching(scene, one("b", 5), one("a", 3))
    await tell(peer, one("b", 4, at=99), one("a", 3, at=98))
    await tell(peer, one("c", 1))
    await is_list(scene, one("b", 5), one("a", 3), one("c", 1))


@SUITE.case("listing.archived", "4.8", needs=LIST)
async def archived(scene: Scene) -> None:
    """A session that is archived leaves the list, and comes back when it is not any more."""
    peer = await watching(scene, one("b", 5), one("a", 3))
    await tell(peer, structs.replace(one("b", 6), archived_at=BEGAN))
    await is_list(scene, one("a", 3))
    await tell(peer, one("b", 7))
    await is_list(scene, one("b", 7), one("a", 3))


@SUITE.case("listing.again", "4.8", "R55", "R54", needs=LIST)
async def again(scene: Scene) -> None:
    """After each welcome the list is watched again, and the answer replaces all, whatever the revisions."""
    peer = await watching(scene, one("b", 5), one("a", 3))
    peer.drop()
    peer = await scene.peer()
    call = await scene.call(peer, "sessions.watch")
    await tell(peer, one("early", 99))  # before the answer it is of no watch
    await scene.heard(peer)
    shown = await scene.listed(lambda listed: len(listed.items) == 2, "what it was")
    expect("the list before the answer", [name for name, _ in shown.items], ["b", "a"])
    await peer.answer(call, ListResult(items=[one("b", 2)]))
    await is_list(scene, one("b", 2))


@SUITE.case("listing.incomplete", "4.8", "R56", needs=LIST)
async def incomplete(scene: Scene) -> None:
    """After `incomplete` the client watches again, ignores frames until the answer, and takes that."""
    peer = await watching(scene, one("a", 3))
    await peer.send(SessionsChanged(ListChanges(incomplete=True)))
    call = await scene.call(peer, "sessions.watch")
    await tell(peer, one("early", 99))
    await peer.answer(call, ListResult(items=[one("c", 8)]))
    await is_list(scene, one("c", 8))


@SUITE.case("listing.pages", "4.8", needs=LIST)
async def pages(scene: Scene) -> None:
    """An item of a page does not count where a frame named the session since, as newer or as removed."""
    await scene.connect()
    await scene.tell("watch", limit=2)
    peer = await scene.peer()
    call = await scene.call(peer, "sessions.watch")
    await peer.answer(call, ListResult(items=[one("d", 9), one("c", 8)], next_after="next"))
    await is_list(scene, one("d", 9), one("c", 8))
    loading = scene.start("more", within=30)
    call = await scene.call(peer, "sessions.list")
    expect("after", call.value("after"), "next")
    await tell(peer, one("b", 12), removed=["a"])
    await peer.answer(call, ListResult(items=[one("b", 5), one("a", 3), one("0", 2)]))
    await loading
    await is_list(scene, one("b", 12), one("d", 9), one("c", 8), one("0", 2))
