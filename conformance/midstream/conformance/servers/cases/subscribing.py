"""Subscribing, and that a subscription gets everything once and in order (SPEC 3.9, 4.2; G6 to G8, G17)."""

from __future__ import annotations

from functools import partial

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.scene import Scene, copied
from midstream.conformance.servers.subscription import Subscription
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.codec import CODECS

case = SUITE.case


@case("subscribing.empty", "4.2")
async def a_new_session_begins_with_a_reset(scene: Scene) -> None:
    """The first sync of a session is a `reset` with the session and `has_more` false."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        session = await scene.session(peer, title="new", metadata={"a": [1, None, 1.5, True]})
        reader = await scene.follow(peer, session)
        sync = reader.answer["sync"]
        expect("the sync", (sync["mode"], sync["has_more"], sync.get("from")), ("reset", False, None))
        expect(
            "the session",
            (sync["session"]["title"], sync["session"]["metadata"]),
            ("new", {"a": [1, None, 1.5, True]}),
        )
        require(
            len(sync["epoch"]) == 16 and int(sync["epoch"], 16) >= 0,
            "an epoch has 16 hex digits (2.7)",
            seen=sync,
        )


@case("subscribing.needs-a-session", "4.2", "G16")
async def subscribing_makes_no_session(scene: Scene) -> None:
    """`subscribe` to a session that does not exist is `not_found`, and makes none."""
    peer = await scene.open()
    name = scene.new_id()
    await peer.refused("not_found", "subscribe", {"session_id": name}, kind="session")
    await peer.refused("not_found", "sessions.get", {"session_id": name}, kind="session")


def _stands_at(reader: Subscription, version: int) -> bool:
    return reader.last == version


@case("subscribing.every-version", "1.3", "G6", "G8")
async def every_change_comes_before_its_answer(scene: Scene) -> None:
    """Each call that changes the session is told as the next version, before its answer, to all who subscribe."""
    for codec in CODECS.values():
        peer, other = await scene.open(codec), await scene.open(codec)
        session = await scene.session(peer)
        mine, theirs = await scene.follow(peer, session), await scene.follow(other, session)
        for number in range(5):
            result = await peer.call("sessions.update", session_id=session, title=f"t{number}")
            expect("the version that the caller stands at", mine.last, result["version"])
            expect("the title", mine.session["title"], f"t{number}")
        await other.so(partial(_stands_at, theirs, mine.last), "all versions at the other reader")
        expect("what the other got", theirs.tags(), ["change"] * 5)
        await scene.same(theirs, other)


@case("subscribing.limit", "5.3", needs=["agent"])
async def a_reset_has_as_many_messages_as_asked(scene: Scene) -> None:
    """A `reset` has the newest messages, at most `limit`, and none without one; `has_more` says whether that is all."""
    peer = await scene.open()
    session = await _with_messages(scene, peer, 5)
    for limit in (None, 1, 3, 5, 200):
        reader = await peer.subscribe(session, **_limited(limit))
        sync = reader.answer["sync"]
        wanted = [] if limit is None else list(range(1, 6))[-min(limit, 5) :]
        expect(f"sequences with limit {limit}", [one["sequence"] for one in sync.get("messages", [])], wanted)
        expect(f"has_more with limit {limit}", sync["has_more"], len(wanted) < 5)
        if wanted and len(wanted) < 5:
            expect("next_before_sequence", sync.get("next_before_sequence"), wanted[0])
        await scene.read_all(reader, peer)
        await scene.same(reader, peer)


@case("subscribing.twice", "4.2", "R20")
async def a_second_subscribe_replaces_the_first(scene: Scene) -> None:
    """Of several subscribes to a session the last one sent counts, and each change comes once."""
    peer = await scene.open()
    session = await scene.session(peer)
    ids = [await peer.begin_subscribe(session, limit=10) for _ in range(3)]
    last = await peer.subscribed(ids[-1])
    await peer.call("sessions.update", session_id=session, title="once")
    await peer.ping()
    expect("frames of the last one", last.tags(), ["change"])
    changes = [one for one in peer.frames if one.tag == "change" and one.plain[1] == last.channel]
    expect("changes that came", len(changes), 1)


@case("subscribing.leave", "7.2", "R29")
async def nothing_comes_after_unsubscribe(scene: Scene) -> None:
    """After `unsubscribe` no frame of the session comes; it is harmless where there is no subscription."""
    peer = await scene.open()
    session = await scene.session(peer)
    expect("an unsubscribe without subscription", await peer.call("unsubscribe", session_id=session), {})
    reader = await scene.follow(peer, session)
    expect("the answer", await peer.call("unsubscribe", session_id=session), {})
    since = len(peer.frames)
    await peer.call("sessions.update", session_id=session, title="unseen")
    await peer.ping()
    seen = [
        one.plain
        for one in peer.frames[since:]
        if one.tag in {"change", "skip", "mark", "sync"} and one.plain[1] == reader.channel
    ]
    expect("frames after unsubscribe", seen, [])


@case("subscribing.failed", "4.2")
async def a_refused_subscribe_leaves_unsubscribed(scene: Scene) -> None:
    """A `subscribe` that is refused ends the subscription that was there."""
    peer = await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session)
    await peer.refused("invalid", "subscribe", {"session_id": session, "limit": 0})
    peer.subscriptions.clear()
    since = len(peer.frames)
    await peer.call("sessions.update", session_id=session, title="unseen")
    await peer.ping()
    expect(
        "frames",
        [one.plain for one in peer.frames[since:] if one.tag == "change" and one.plain[1] == reader.channel],
        [],
    )


@case("subscribing.two-sessions", "3.9", "R26")
async def channels_keep_sessions_apart(scene: Scene) -> None:
    """Two sessions have two channels, the same on every connection, and nothing of one is shown in the other."""
    peer, other = await scene.open(), await scene.open()
    first, second = await scene.session(peer), await scene.session(peer)
    readers = [
        await scene.follow(peer, first),
        await scene.follow(peer, second),
        await scene.follow(other, first),
    ]
    require(
        readers[0].channel != readers[1].channel, "two sessions have two channels", seen=readers[0].channel
    )
    expect("the channel on another connection", readers[2].channel, readers[0].channel)
    for number in range(3):
        await peer.call("sessions.update", session_id=(first, second)[number % 2], title=f"t{number}")
    await other.so(lambda: readers[2].session.get("title") == "t2", "the title t2")
    expect("frames", [len(one.tags()) for one in readers], [2, 1, 2])


@case("subscribing.leaving-stops-nothing", "1.3", "G17")
async def disconnecting_stops_nothing(scene: Scene) -> None:
    """A turn goes on when everybody who was there has gone."""
    peer = await scene.open()
    session = await scene.session(peer)
    await scene.follow(peer, session)
    answer = await scene.prompt(peer, session)
    peer.cut()
    other = await scene.open()
    turn = (await other.call("turn", session_id=session, turn_id=answer["turn_id"]))["turn"]
    require(
        turn["state"] in {"running", "completed"},
        "the turn is not ended by leaving",
        expected="running",
        seen=turn,
    )


@case("subscribing.mark", "3.9", "R23", heartbeats=4)
async def marks_tell_where_the_stream_stands(scene: Scene) -> None:
    """After something was sent, a `mark` with its version comes by the next heartbeat."""
    peer = await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session)
    await peer.call("sessions.update", session_id=session, title="t")
    await peer.until(
        lambda one: one.tag == "mark" and one.plain[1] == reader.channel and one.plain[2] == reader.last,
        "a mark", seconds=peer.heartbeat * 3 + 2,
    )  # fmt: skip


@case("subscribing.signal", "7.13")
async def signals_reach_who_subscribes(scene: Scene) -> None:
    """A signal reaches every live subscription, the sender's too, with the sender's connection id and no version."""
    peer, other, away = await scene.open(), await scene.open(), await scene.open()
    session = await scene.session(peer)
    mine, theirs = await scene.follow(peer, session), await scene.follow(other, session)
    before = mine.last
    expect("the answer", await peer.call("signal", session_id=session, name="typing", data={"on": True}), {})
    wanted = ["signal", mine.channel, peer.welcome["connection_id"], "typing", {"on": True}]
    for one in (peer, other):
        frame = await one.until(lambda frame: frame.tag == "signal", "the signal")
        expect("the signal", frame.plain, wanted)
    await away.ping()
    expect("signals without a subscription", [one.plain for one in away.frames if one.tag == "signal"], [])
    expect("versions", (mine.last, theirs.last), (before, before))


@case("subscribing.deleted", "11.4")
async def a_delete_closes_subscriptions(scene: Scene) -> None:
    """`sessions.delete` ends every subscription with `closed` `deleted`, not retryable, and no frame follows."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(peer)
    readers = [await scene.follow(peer, session), await scene.follow(other, session)]
    expect("the answer", await peer.call("sessions.delete", session_id=session), {})
    for one, reader in zip((peer, other), readers, strict=True):
        await one.so(lambda reader=reader: reader.closed is not None, "closed")  # type: ignore[misc]  # bound at once
        expect("the frame", (reader.closed or [])[2:], ["deleted", False])
        await one.ping()


@case("subscribing.cursor-kept", "4.2", needs=["agent"])
async def a_cursor_of_nothing_missed_brings_nothing(scene: Scene) -> None:
    """A subscribe with a cursor that missed nothing carries no message, and stands at the same version."""
    peer = await scene.open()
    session = await _with_messages(scene, peer, 3)
    reader = await scene.follow(peer, session)
    again = await peer.subscribe(session, replica=copied(reader), limit=50)
    sync = again.answer["sync"]
    require(sync["mode"] in {"replay", "catchup"}, "nothing needs a reset", seen=sync)
    expect("what it carries", (sync.get("messages", []), sync["version"]), (list[Map](), reader.last))


def _limited(limit: int | None) -> Map:
    return {} if limit is None else {"limit": limit}


async def _with_messages(scene: Scene, peer: Peer, count: int) -> str:
    """Make a session with so many user messages, whose turns are stopped."""
    session = await scene.session(peer)
    for number in range(count):
        answer = await scene.prompt(peer, session, f"text {number}")
        await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    return session
