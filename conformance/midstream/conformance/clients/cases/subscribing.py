"""Subscriptions: which frames are theirs, and how they begin and end (SPEC 4.2, 11.4, 4.7)."""

from midstream.conformance.clients.cases.talks import OPEN, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Asked
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect, require
from midstream.protocol.calls import SessionResult
from midstream.protocol.frames import Closed, Mark

PUT_OFF_S = 6.0
"""How long a client may wait before it sends a call again that was put off."""


@SUITE.case("subscribing.first", "4.2")
async def first(scene: Scene) -> None:
    """The first subscribe has no cursor; the replica shows nothing before its answer."""
    talk = streaming()
    await scene.connect()
    await scene.hold(talk)
    peer = await scene.peer()
    call, asked = await scene.subscribed(peer)
    scene.expect_cursor(talk, asked, None)
    state = await scene.shown(talk)
    expect("messages before the answer", state.digests, [])
    require(state.state != "live", "not to be live before the answer")
    await scene.answer_sync(peer, call, talk)
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.frames_before_the_answer", "4.2", "R20")
async def frames_before_the_answer(scene: Scene) -> None:
    """Frames of the session between the sending of subscribe and its answer are ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.append("lost ")
    await peer.send(Mark(talk.channel, talk.version))
    call, asked = await scene.subscribed(peer)
    scene.expect_cursor(talk, asked, before)
    cursor_sync = talk.payload("replay", before)
    await peer.send(cursor_frame := talk.append("of the old subscription "))
    await peer.send(talk.put(OPEN))
    await peer.send(talk.short("too"))
    await peer.send(Closed(talk.channel, "deleted", False))
    await scene.heard(peer)
    await scene.stays(talk, before)
    require(cursor_sync.version < cursor_frame.version, "a script that means what it says")
    await scene.answer_sync(peer, call, talk)
    await scene.goes_on(peer, talk)
    expect("subscribe calls that were not called for", peer.waiting("subscribe"), 0)


@SUITE.case("subscribing.old_channel", "4.2", "R12", "R26")
async def old_channel(scene: Scene) -> None:
    """Where a new answer names another channel, frames of the old one are ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    old = talk.channel
    await peer.send(Closed(old, "reload", True))
    talk.channel = 7
    call, asked = await scene.subscribed(peer)
    scene.expect_cursor(talk, asked, talk.version)
    await scene.answer_sync(peer, call, talk)
    await scene.reached(talk)
    version, last = talk.version, talk.last
    await peer.send(["d", old, version + 1, 1, last.sequence, 1, "of the old load"])
    await peer.send([old, version + 1, 1, "of the old load"])
    await peer.send(Mark(old, version + 5))
    await peer.send(Closed(old, "deleted", False))
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.two_sessions", "4.2", "R26")
async def two_sessions(scene: Scene) -> None:
    """Frames of two sessions mix, and each enters its own replica; one's gap is not the other's."""
    talk, other = streaming(), streaming("s2", channel=2)
    peer = await scene.open(talk)
    await scene.hold(other)
    await scene.sync(peer, other)
    await scene.reached(other)
    for _ in range(3):
        await peer.send(talk.short("a"))
        await peer.send(other.short("b"))
        await peer.send(other.append("c"))
    await scene.reached(talk)
    await scene.reached(other)
    before = talk.version
    talk.short("lost")
    await peer.send(Mark(1, talk.version))
    call, asked = await scene.subscribed(peer)
    expect("the session that is subscribed to", asked.session_id, "s1")
    scene.expect_cursor(talk, asked, before)
    await peer.send(other.short("goes on"))
    await scene.reached(other)
    await scene.answer_sync(peer, call, talk)
    await scene.goes_on(peer, talk)
    await scene.goes_on(peer, other)


@SUITE.case("subscribing.reload", "11.4", "R12")
async def reload(scene: Scene) -> None:
    """`closed` with `reload`, or an unknown code that is retryable, leads to subscribe with the cursor."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("text"))
    await scene.reached(talk)
    await peer.send(Closed(talk.channel, "reload", True))
    await scene.again(peer, talk, cursor=talk.version)
    await peer.send(Closed(talk.channel, "brand_new", True))
    await scene.again(peer, talk, cursor=talk.version)
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.over", "11.4", "G21")
async def over(scene: Scene) -> None:
    """`closed` with `deleted`, `forbidden` or an unknown code, not retryable, ends the session for good."""
    await scene.connect()
    peer = await scene.peer()
    for number, code in enumerate(("deleted", "forbidden", "brand_new")):
        talk = streaming(code, channel=number)
        await scene.hold(talk)
        await scene.sync(peer, talk)
        await scene.reached(talk)
        await peer.send(Closed(number, code, False))
        await scene.until(talk, lambda shown: shown.state == "closed", f"that {code!r} closed the session")
    await scene.heard(peer)
    expect("subscribe calls after the end", peer.waiting("subscribe"), 0)


@SUITE.case("subscribing.not_found", "4.2")
async def not_found(scene: Scene) -> None:
    """A session that does not exist is made where that is wanted; `already_exists` is taken for good."""
    await scene.connect()
    peer = await scene.peer()
    for number, exists in enumerate((False, True)):
        talk = Conversation(f"s{number}", channel=number)
        await scene.hold(talk, create=True)
        call = await scene.either(peer, "subscribe", "sessions.create")
        if call.method == "subscribe":
            await peer.refuse(call, "not_found", kind="session", id=talk.session_id)
            call = await scene.call(peer, "sessions.create")
        expect("the session that is made", call.value("session_id"), talk.session_id)
        if exists:
            await peer.refuse(call, "already_exists", id=talk.session_id)
        else:
            result = SessionResult(session=talk.now.session, epoch=talk.now.epoch, version=talk.version)
            await peer.answer(call, result)
        await scene.sync(peer, talk)
        await scene.goes_on(peer, talk)


@SUITE.case("subscribing.created_once", "7.11", "G3")
async def created_once(scene: Scene) -> None:
    """A session whose making was not answered is not made under another key or id."""
    talk = Conversation()
    await scene.connect()
    await scene.hold(talk, create=True)
    made: list[Asked] = []
    for _ in range(3):
        peer = await scene.peer()
        while len(made) < len(scene.server.peers):
            call = await scene.either(peer, "subscribe", "sessions.create")
            if call.method == "subscribe":
                await peer.refuse(call, "not_found", kind="session", id=talk.session_id)
            else:
                made.append(scene.expect_same(made[0], call) if made else call)
        if len(made) < 3:
            peer.drop()
    result = SessionResult(session=talk.now.session, epoch=talk.now.epoch, version=talk.version)
    await scene.server.peers[-1].answer(made[-1], result)
    await scene.sync(scene.server.peers[-1], talk)
    await scene.goes_on(scene.server.peers[-1], talk)


@SUITE.case("subscribing.refused", "4.2", "G21")
async def refused(scene: Scene) -> None:
    """A session that does not exist, and is not to be made, is closed; the connection stays."""
    talk = Conversation()
    await scene.connect()
    await scene.hold(talk)
    peer = await scene.peer()
    call, _ = await scene.subscribed(peer)
    await peer.refuse(call, "not_found", kind="session", id=talk.session_id)
    state = await scene.until(talk, lambda shown: shown.state == "closed", "that there is no such session")
    expect("the error", state.error, "not_found")
    other = streaming("s2", channel=2)
    await scene.hold(other)
    await scene.sync(peer, other)
    await scene.goes_on(peer, other)


@SUITE.case("subscribing.put_off", "11.1")
async def put_off(scene: Scene) -> None:
    """A subscribe that is refused for now (`overloaded`, `unavailable`, an unknown code) is sent again."""
    talk = streaming()
    await scene.connect()
    await scene.hold(talk)
    peer = await scene.peer()
    for code in ("overloaded", "unavailable", "brand_new"):
        # pauses between calls are not scaled
        call = await scene.call(peer, "subscribe", within=scene.patience + PUT_OFF_S)
        await peer.refuse(call, code, retryable=True)
    call = await scene.call(peer, "subscribe", within=scene.patience + PUT_OFF_S)
    await scene.answer_sync(peer, call, talk)
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.second_gap", "4.7")
async def second_gap(scene: Scene) -> None:
    """After a second gap within a minute the client subscribes without its cursor, and takes what comes."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.short("lost ")
    await peer.send(Mark(talk.channel, talk.version))
    await scene.again(peer, talk, cursor=before)
    talk.short("lost again")
    await peer.send(Mark(talk.channel, talk.version))
    await scene.again(peer, talk, cursor=None)
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.left", "4.2", "R29")
async def left(scene: Scene) -> None:
    """After an unsubscribe, frames and the late answer of a subscribe are ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    talk.short("lost")
    await peer.send(Mark(talk.channel, talk.version))
    late, _ = await scene.subscribed(peer)
    await scene.tell("leave", session=talk.session_id)
    call = await scene.call(peer, "unsubscribe")
    await scene.answer_sync(peer, late, talk, mode="reset")
    await peer.answer(call, {})
    await peer.send(talk.short("unseen"))
    await scene.heard(peer)
    state = await scene.shown(talk)
    expect("the state", state.state, "closed")
    await scene.hold(talk)
    await scene.sync(peer, talk)
    await scene.goes_on(peer, talk)


@SUITE.case("subscribing.all_again", "4.7", "R4")
async def all_again(scene: Scene) -> None:
    """After each welcome every session is subscribed to again, each with its own cursor."""
    talks = [streaming(f"s{number}", channel=number) for number in range(3)]
    peer = await scene.open(talks[0])
    for talk in talks[1:]:
        await scene.hold(talk)
        await scene.sync(peer, talk)
    for number, talk in enumerate(talks):
        for _ in range(number):
            await peer.send(talk.short("x"))
        await scene.reached(talk)
    peer.drop()
    again = await scene.peer()
    left_over = {talk.session_id: talk for talk in talks}
    for _ in talks:
        call, asked = await scene.subscribed(again)
        talk = left_over.pop(asked.session_id)
        scene.expect_cursor(talk, asked, talk.version)
        talk.short("missed")
        talk.channel += 10
        await scene.answer_sync(again, call, talk)
    for talk in talks:
        await scene.goes_on(again, talk)
