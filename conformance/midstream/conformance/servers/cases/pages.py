"""Pages of messages, single messages, turns and digests (SPEC 5.6, 7.3 to 7.5, 7.12; G7, G8, G14)."""

from __future__ import annotations

from functools import partial

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Frame, Map
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.codec import JSON

case = SUITE.case


async def _filled(scene: Scene, peer: Peer, count: int) -> str:
    session = await scene.session(peer)
    for number in range(count):
        answer = await scene.prompt(peer, session, f"text {number}", message_id=f"m{number + 1}")
        await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    return session


@case("pages.walk", "7.3", "G14", needs=["agent"])
async def walking_visits_each_message_once(scene: Scene) -> None:
    """Walking `next_before_sequence` visits each message once, in pages of any size, and ends with `has_more` false."""
    peer = await scene.open()
    session = await _filled(scene, peer, 7)
    for limit in (1, 2, 3, 6, 7, 8):
        seen: list[int] = []
        before: Map = {}
        for _ in range(10):
            page = await peer.call("messages", session_id=session, limit=limit, **before)
            items = [one["sequence"] for one in page["items"]]
            require(len(items) <= limit, "a page has at most `limit` messages", expected=limit, seen=items)
            expect("start and end", (page["start_sequence"], page["end_sequence"]), (items[0], items[-1]))
            expect("what it was asked with", page.get("before_sequence"), before.get("before_sequence"))
            expect("total", page["total"], 7)
            seen = items + seen
            expect("has_more", page["has_more"], seen[0] > 1)
            if not page["has_more"]:
                break
            expect("next_before_sequence", page["next_before_sequence"], page["start_sequence"])
            before = {"before_sequence": page["next_before_sequence"]}
        expect(f"the walk in pages of {limit}", seen, list(range(1, 8)))


@case("pages.exact-end", "7.3", "G14", needs=["agent"])
async def a_page_that_ends_at_the_first_message_has_no_more(scene: Scene) -> None:
    """Where the page has all that there is, `has_more` is false and nothing is next, however it was asked for."""
    peer = await scene.open()
    session = await _filled(scene, peer, 3)
    for params in (
        {"limit": 3},
        {"limit": 4},
        {"before_sequence": 2},
        {"before_sequence": 1},
        {"before_sequence": 99, "limit": 3},
    ):
        page = await peer.call("messages", session_id=session, **params)
        expect(
            f"the end of the walk with {params}",
            (page["has_more"], page.get("next_before_sequence")),
            (False, None),
        )


@case("pages.empty", "7.3")
async def an_empty_page_has_no_borders(scene: Scene) -> None:
    """A page of an empty session has no items, no borders and nothing more."""
    peer = await scene.open()
    page = await peer.call("messages", session_id=await scene.session(peer))
    seen = {
        key: page.get(key)
        for key in (
            "items",
            "total",
            "start_sequence",
            "end_sequence",
            "next_before_sequence",
            "has_more",
            "turns",
        )
    }
    wanted: Map = {
        "items": [],
        "total": 0,
        "start_sequence": None,
        "end_sequence": None,
        "next_before_sequence": None,
        "has_more": False,
        "turns": [],
    }
    expect("the page", seen, wanted)


def _is_error(id: int, frame: Frame) -> bool:
    return frame.tag == "error" and frame.plain[1] == id


@case("pages.in-the-stream", "3.7", "G8", "R14", needs=["agent"])
async def a_page_stands_at_its_version(scene: Scene) -> None:
    """While text is written, every page comes at the version that the reader stands at, and can be merged there."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await peer.subscribe(session)
    text = await held.text()
    for number in range(20):
        ids = [await peer.begin("messages", session_id=session, limit=2) for _ in range(3)]
        await held.append(text, f"{number} ")
        ids.append(await peer.begin("message", session_id=session, message_id="none"))
        for id in ids[:-1]:
            await peer.answer(id)
        await peer.until(partial(_is_error, ids[-1]), "an error")
    await held.taken()
    await peer.ping()
    await scene.read_all(reader, peer)
    await scene.same(reader, peer)
    await held.end()


@case("pages.concurrent", "7.3", "G14", needs=["agent"])
async def a_walk_while_others_write_misses_nothing(scene: Scene) -> None:
    """A walk over pages while a turn is written visits each earlier message once."""
    peer, writer = await scene.open(), await scene.open()
    session = await _filled(scene, writer, 6)
    held = await scene.turn(writer, session)
    text = await held.text()
    seen: list[int] = []
    before: Map = {}
    while True:
        page = await peer.call("messages", session_id=session, limit=2, **before)
        seen = [one["sequence"] for one in page["items"]] + seen
        await held.append(text, "more ")
        await held.text("another")
        if not page["has_more"]:
            break
        before = {"before_sequence": page["next_before_sequence"]}
    expect("the walk", seen, list(range(1, seen[-1] + 1)))
    await held.end()


@case("pages.live-digest", "5.6", "G7", needs=["agent"])
async def digests_are_of_what_is_shown_now(scene: Scene) -> None:
    """`verify` in mid-stream gives the digests of the live messages, streamed text included, in both encodings."""
    for codec in (None, JSON):
        peer = await scene.open() if codec is None else await scene.open(codec)
        session = await scene.session(peer)
        held = await scene.turn(peer, session)
        reader = await scene.follow(peer, session)
        text = await held.say("stored ")
        for word in ("streamed ", "and ", "not stored, ü 1e2"):
            await held.append(text, word)
            await held.taken()
            await peer.ping()
            await scene.verify(reader, peer)
        await held.end()


@case("pages.message", "7.4", "G8", needs=["agent"])
async def one_message_is_shown_as_it_is_now(scene: Scene) -> None:
    """`message` and `messages` show a message alike, in mid-stream, at the same version."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.say("now")
    page = await peer.call("messages", session_id=session)
    newest = page["items"][-1]
    answer = await peer.call("message", session_id=session, message_id=newest["message_id"])
    expect("the message", answer["message"], newest)
    expect("its place", (answer["epoch"], answer["version"]), (page["epoch"], page["version"]))
    await held.end()


@case("pages.turn", "7.5", needs=["agent"])
async def turns_can_be_asked_for(scene: Scene) -> None:
    """`turn` shows the running one as `current`, `null` where none runs, and any by its id, after a clear too."""
    peer = await scene.open()
    session = await scene.session(peer)
    expect("the current turn of a quiet session", (await peer.call("turn", session_id=session))["turn"], None)
    held = await scene.turn(peer, session)
    turn = (await peer.call("turn", session_id=session))["turn"]
    expect("the current turn", (turn["turn_id"], turn["state"]), (held.turn_id, "running"))
    await held.end()
    expect("the current turn after it", (await peer.call("turn", session_id=session))["turn"], None)
    await peer.call("sessions.clear", session_id=session)
    turn = (await peer.call("turn", session_id=session, turn_id=held.turn_id))["turn"]
    expect("the turn by its id", turn["state"], "completed")


@case("pages.turns-of-items", "7.3", needs=["agent"])
async def a_page_brings_the_turns_of_its_items(scene: Scene) -> None:
    """A page has the turns of its items and no others, besides the running one."""
    peer = await scene.open()
    session = await _filled(scene, peer, 3)
    page = await peer.call("messages", session_id=session, limit=2)
    expect("the turns", {one["turn_id"] for one in page["turns"]}, {one["turn_id"] for one in page["items"]})
