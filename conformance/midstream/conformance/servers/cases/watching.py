"""The list of sessions and its watch (SPEC 4.8, 7.11; G31, R50 to R53)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


def _told(peer: Peer, session: str) -> list[Map]:
    """What was told of a session: its entities, or that it is gone."""
    told: list[Map] = []
    for frame in peer.frames:
        if frame.tag == "sessions":
            told += [one for one in frame.plain[1].get("changed", []) if one["session_id"] == session]
            told += [{"removed": session} for one in frame.plain[1].get("removed", []) if one == session]
    return told


@case("watching.list", "7.11")
async def the_list_is_newest_first(scene: Scene) -> None:
    """`sessions.list` has the last changed first, then by id; pages are walked by `next_after`."""
    peer = await scene.open()
    made = [await scene.session(peer) for _ in range(5)]
    await peer.call("sessions.update", session_id=made[0], title="newest")
    page = await peer.call("sessions.list", limit=200)
    keys = [(-one["updated_at"], one["session_id"]) for one in page["items"]]
    expect("the order", keys, sorted(keys))
    seen: list[str] = []
    after: Map = {}
    for _ in range(400):
        page = await peer.call("sessions.list", limit=2, **after)
        seen += [one["session_id"] for one in page["items"]]
        if set(made) <= set(seen) or "next_after" not in page:
            break
        after = {"after": page["next_after"]}
    require(set(made) <= set(seen), "the walk reaches all that did not change", expected=made, seen=seen[:20])


@case("watching.archived", "7.11")
async def the_archive_is_a_list_of_its_own(scene: Scene) -> None:
    """Archived sessions are in the list of the archive, and in no other."""
    peer = await scene.open()
    session = await scene.session(peer)
    await peer.call("sessions.archive", session_id=session)
    lists = [
        [
            one["session_id"]
            for one in (await peer.call("sessions.list", limit=200, archived=archived))["items"]
        ]
        for archived in (False, True)
    ]
    expect("where it is", [session in one for one in lists], [False, True])


@case("watching.changes", "7.11", "G31")
async def a_watch_tells_every_change(scene: Scene) -> None:
    """After the answer of `sessions.watch` what changes is told, as it is on disk; the newest comes last; also that it is gone."""
    peer, other = await scene.open(), await scene.open()
    early = await scene.session(other)
    await peer.call("sessions.watch", limit=5)
    tags = [one.tag for one in peer.frames]
    told = tags.index("sessions") if "sessions" in tags else len(tags)
    require(tags.index("result") < told, "nothing is told before the answer", seen=tags)
    made = await scene.session(other)
    result = None
    for title in ("a", "b", "c"):
        result = await other.call("sessions.update", session_id=made, title=title)
    await peer.so(lambda: bool(_told(peer, made)) and _told(peer, made)[-1].get("title") == "c", "the newest")
    expect("as it is", _told(peer, made)[-1], (result or {})["session"])
    revisions = [one["revision"] for one in _told(peer, made)]
    expect("revisions only grow", revisions, sorted(set(revisions)))
    await other.call("sessions.archive", session_id=early)
    await peer.so(lambda: any("archived_at" in one for one in _told(peer, early)), "that it was archived")
    await other.call("sessions.delete", session_id=made)
    await peer.so(lambda: {"removed": made} in _told(peer, made), "that it is gone")
    expect("nothing after that", _told(peer, made)[-1], {"removed": made})


@case("watching.turn", "7.11", "G31", needs=["agent"])
async def a_watch_shows_turns_begin_and_end(scene: Scene) -> None:
    """Who watches sees a turn begin and end, without subscribing."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(other)
    await peer.call("sessions.watch")
    answer = await scene.prompt(other, session)
    await peer.so(
        lambda: any(one.get("running_turn_id") == answer["turn_id"] for one in _told(peer, session)),
        "that the turn runs",
    )
    await other.call("stop", session_id=session, turn_id=answer["turn_id"])
    await peer.so(lambda: "running_turn_id" not in _told(peer, session)[-1], "that it does not run any more")


@case("watching.deleted-in-a-tick", "7.11", "R53")
async def of_what_is_gone_nothing_else_is_told(scene: Scene) -> None:
    """A session that changes and is deleted at once is `removed` in the end, and not told after that."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(other)
    await peer.call("sessions.watch")
    for method, params in (
        ("sessions.update", {"title": "x"}),
        ("sessions.archive", {}),
        ("sessions.delete", {}),
    ):
        await other.begin(method, session_id=session, **params)
    await other.ping()
    await peer.so(lambda: {"removed": session} in _told(peer, session), "that it is gone")
    expect("the last that is told", _told(peer, session)[-1], {"removed": session})


@case("watching.unwatch", "7.11")
async def unwatch_ends_the_watch(scene: Scene) -> None:
    """After `sessions.unwatch` nothing is told; it is harmless without a watch, and a new watch tells again."""
    peer, other = await scene.open(), await scene.open()
    expect("without a watch", await peer.call("sessions.unwatch"), {})
    await peer.call("sessions.watch")
    await peer.call("sessions.unwatch")
    session = await scene.session(other)
    third = await scene.open()
    await third.call("sessions.watch")
    await other.call("sessions.update", session_id=session, title="x")
    await third.so(lambda: bool(_told(third, session)), "the change, at another one who watches")
    await peer.ping()
    expect("what is told after unwatch", _told(peer, session), [])
    answer = await peer.call("sessions.watch", limit=200)
    require(session in [one["session_id"] for one in answer["items"]], "the next answer has it", seen=session)
