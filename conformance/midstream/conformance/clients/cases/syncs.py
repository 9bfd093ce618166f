"""Catching up: the modes, new epochs, crashes, restored databases, conflation (SPEC 5, 6, 9)."""

import msgspec

from midstream.conformance.clients.cases.talks import DONE, OPEN, THOUGHT, TOOL, in_turn, long, streaming
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect, require
from midstream.protocol.calls import VerifyParams, VerifyResult
from midstream.protocol.frames import Sync
from midstream.protocol.model import TextPart


@SUITE.case("syncs.replay", "5.1", "G7", "R1", "R9")
async def replay(scene: Scene) -> None:
    """A replay brings what was appended, ended and added while the client was away."""
    talk = streaming()
    talk.put(THOUGHT)
    peer = await scene.open(talk)
    await peer.send(talk.append("before ", part=1))
    await scene.reached(talk)
    peer.drop()
    for text in ("a", "b", "c"):
        talk.append(text, part=1)
        talk.append(text.upper(), part=2)
    talk.put(TOOL)
    talk.append("{", part=3)
    talk.finish()
    talk.user("and then?")
    talk.agent(OPEN)
    talk.short("then")
    again = await scene.peer()
    await scene.sync(again, talk, mode="replay")
    await again.send(talk.short(" on"))
    await scene.goes_on(again, talk)


@SUITE.case("syncs.catchup", "5.1", "G7", "R9")
async def catchup(scene: Scene) -> None:
    """A catchup brings whole parts, turns and the session, and leaves what did not change."""
    talk = in_turn()
    peer = await scene.open(talk)
    await peer.send(talk.short("before "))
    await scene.reached(talk)
    peer.drop()
    talk.short("after ")
    talk.put(DONE, TOOL)
    talk.end_turn("t1")
    again = await scene.peer()
    await scene.sync(again, talk, mode="catchup")
    await scene.goes_on(again, talk)


@SUITE.case("syncs.reset", "5.3", "G7")
async def reset(scene: Scene) -> None:
    """A reset in answer to a cursor replaces the replica."""
    talk = long(5)
    peer = await scene.open(talk, limit=3)
    peer.drop()
    for _ in range(4):
        talk.user("much")
    again = await scene.peer()
    asked = await scene.sync(again, talk, mode="reset")
    require(asked.limit == 3, "a limit for the reset that may come", expected=3, seen=asked.limit)
    await scene.goes_on(again, talk)
    await scene.reached(talk, first=7)


@SUITE.case("syncs.behind", "6", "G15", "R13")
async def behind(scene: Scene) -> None:
    """A reader that is behind gets syncs unasked, of any mode, and is right after each."""
    talk = long(4)
    peer = await scene.open(talk, limit=3)
    for mode in ("replay", "catchup", "reset", "replay"):
        since = talk.version
        talk.short("conflated ")
        talk.put(DONE)
        talk.put(OPEN)
        talk.short("text ")
        await peer.send(Sync(talk.channel, talk.payload(mode, since, limit=2)))
        await scene.reached(talk)
        await peer.send(talk.short("and single "))
        await scene.goes_on(peer, talk)


@SUITE.case("syncs.new_epoch", "5.4", "G4")
async def new_epoch(scene: Scene) -> None:
    """A new epoch begins with a sync, and from then on the cursor names it."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("one "))
    await peer.send(talk.new_epoch("of a new epoch"))
    await peer.send(talk.short("two"))
    await scene.reached(talk)
    peer.drop()
    again = await scene.peer()
    await scene.again(again, talk, cursor=talk.version)


@SUITE.case("syncs.crash", "9", "G12", "R5")
async def crash(scene: Scene) -> None:
    """Text and parts that were streamed and lost in a crash leave the replica with the next sync."""
    talk = in_turn()
    peer = await scene.open(talk)
    await peer.send(talk.short("stored "))
    await peer.send(talk.put(DONE, durable=True))
    await peer.send(talk.put(OPEN))
    await peer.send(talk.short("lost"))
    await peer.send(talk.append("lost", part=1))
    await scene.reached(talk)
    before = talk.version
    peer.drop()
    talk.crash()
    again = await scene.peer()
    await scene.again(again, talk, cursor=before)
    state = await scene.goes_on(again, talk)
    expect("the turn's state", [turn.state for turn in state.turns], ["failed"])


@SUITE.case("syncs.two_crashes", "9", "R6", "G12")
async def two_crashes(scene: Scene) -> None:
    """Two crashes while the client was away leave it equal too."""
    talk = in_turn()
    peer = await scene.open(talk)
    await peer.send(talk.short("lost"))
    await scene.reached(talk)
    peer.drop()
    talk.crash()
    talk.agent(OPEN)
    talk.short("lost again")
    talk.crash()
    again = await scene.peer()
    await scene.sync(again, talk)
    await scene.goes_on(again, talk)


@SUITE.case("syncs.restored", "5.3", "R10", "G4")
async def restored(scene: Scene) -> None:
    """A restored database leads to a reset with a lower version, and from there on versions count anew."""
    talk = streaming()
    talk.title("backed up")
    version = talk.version
    talk.begin_turn("t1", talk.new_message("user", TextPart(text="later"), turn_id="t1"))
    talk.end_turn("t1")
    peer = await scene.open(talk)
    peer.drop()
    talk.restore(version)
    again = await scene.peer()
    await scene.sync(again, talk)
    await scene.goes_on(again, talk)
    expect("messages", len((await scene.shown(talk)).digests), 2)


@SUITE.case("syncs.cursor_of_a_sync", "2.7", "G12")
async def cursor_of_a_sync(scene: Scene) -> None:
    """The cursor takes `durable` from a sync, where that names one below its version."""
    talk = streaming()
    stored = talk.now.durable
    talk.short("live")
    peer = await scene.open(talk)
    peer.drop()
    again = await scene.peer()
    asked = await scene.again(again, talk, cursor=talk.version)
    expect("the cursor's durable", getattr(asked.cursor, "durable", None), stored)


@SUITE.case("syncs.verify", "5.6", needs=["verify"])
async def verify(scene: Scene) -> None:
    """A comparison by digests finds the replica equal, and a digest that is another one is noticed."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("text"))
    await scene.reached(talk)
    for equal in (True, False):
        comparing, call = await scene.verifies(peer, talk)
        expect("the params of verify", isinstance(call.params, VerifyParams), True)
        digests = talk.now.digests(1)
        if not equal:
            digests[-1] = (digests[-1][0], digests[-1][1], "0" * 16)
        await peer.answer(call, VerifyResult(version=talk.version, epoch=talk.now.epoch, digests=digests))
        found = msgspec.json.decode(await comparing)
        expect("whether the client finds itself equal", found, {"equal": equal})
