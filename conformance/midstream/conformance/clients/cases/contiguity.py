"""Which frame is the next, and what a gap is (SPEC 4.4, rules 1 to 4)."""

from midstream.conformance.clients.cases.talks import OPEN, streaming
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.frames import Mark, Skip, Sync
from midstream.protocol.model import ReasoningPart, TextPart


@SUITE.case("contiguity.in_order", "4.4", "G6")
async def in_order(scene: Scene) -> None:
    """Deltas, changes and skips that follow each other are applied, each once."""
    talk = streaming()
    peer = await scene.open(talk)
    for _ in range(3):
        await peer.send(talk.append("one "))
        await scene.reached(talk)
        await peer.send(talk.short("two "))
        await scene.reached(talk)
        await peer.send(talk.put(ReasoningPart(text="hm", state="done")))
        await peer.send(talk.skip(2))
        await peer.send(talk.put(OPEN))
        await scene.reached(talk)
    expect("subscribe calls that were not called for", peer.waiting("subscribe"), 0)


@SUITE.case("contiguity.delta_gap", "4.4", "G6", "R13")
async def delta_gap(scene: Scene) -> None:
    """A delta that leaves a version out is a gap: not applied; the client subscribes with its cursor."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.append("lost ")
    await peer.send(talk.append("seen"))
    await scene.again(peer, talk, cursor=before)
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.short_delta_gap", "4.4", "G6")
async def short_delta_gap(scene: Scene) -> None:
    """A short delta that leaves a version out is a gap."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.short("lost ")
    await peer.send(talk.short("seen"))
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.change_gap", "4.4", "G6")
async def change_gap(scene: Scene) -> None:
    """A change that leaves a version out is a gap, also where it could be applied."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.append("lost")
    await peer.send(talk.title("a title"))
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.skip_gap", "4.4", "R15")
async def skip_gap(scene: Scene) -> None:
    """A skip that begins above the version reached is a gap."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.append("lost")
    await peer.send(talk.skip())
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.skip_no_gap", "4.4", "R15")
async def skip_no_gap(scene: Scene) -> None:
    """A skip moves the version by as many as it covers, also where it begins below the version reached."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.skip(5))
    await scene.goes_on(peer, talk)
    reached = talk.version
    talk.skip(3)
    await peer.send(Skip(talk.channel, reached - 2, talk.version))
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.mark_gap", "4.4", "R23")
async def mark_gap(scene: Scene) -> None:
    """A mark above the version reached is a gap: the last frame was lost."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.finish()
    await peer.send(Mark(talk.channel, talk.version))
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.mark_here", "4.4")
async def mark_here(scene: Scene) -> None:
    """A mark at or below the version reached changes nothing."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(Mark(talk.channel, talk.version))
    await peer.send(Mark(talk.channel, talk.version - 1))
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.old_frames", "4.4", "R25")
async def old_frames(scene: Scene) -> None:
    """A frame whose version was reached already is ignored, whatever it is."""
    talk = streaming()
    peer = await scene.open(talk)
    frames = [
        talk.append("once "),
        talk.short("only "),
        talk.put(TextPart(text="x", state="done")),
        talk.skip(),
    ]
    for frame in frames:
        await peer.send(frame)
    await scene.reached(talk)
    for frame in reversed(frames):
        await peer.send(frame)
    await scene.heard(peer)
    await scene.reached(talk)
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.nothing_after_a_gap", "4.4", "R4", "R13")
async def nothing_after_a_gap(scene: Scene) -> None:
    """After a gap nothing is applied, and the cursor stands before it, until the sync."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.append("seen "))
    await scene.reached(talk)
    before = talk.version
    talk.append("lost ")
    for _ in range(4):
        await peer.send(talk.append("too early "))
    await peer.send(talk.finish())
    await scene.heard(peer)
    await scene.stays(talk, before)
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.sync_from_below", "4.4", "G7")
async def sync_from_below(scene: Scene) -> None:
    """A sync that begins below the version reached is applied, and takes nothing back."""
    talk = streaming()
    peer = await scene.open(talk)
    below = talk.version
    await peer.send(talk.append("seen "))
    await scene.reached(talk)
    talk.put(OPEN)
    await peer.send(Sync(talk.channel, talk.payload("catchup", below)))
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.sync_gap", "4.4", "G6")
async def sync_gap(scene: Scene) -> None:
    """A sync whose `from` is above the version reached is a gap."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    talk.append("lost ")
    since = talk.version
    talk.append("seen")
    await peer.send(Sync(talk.channel, talk.payload("replay", since)))
    await scene.again(peer, talk, cursor=before)


@SUITE.case("contiguity.old_sync", "4.4", "R25")
async def old_sync(scene: Scene) -> None:
    """A replay or catchup whose version was reached already is ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    since = talk.version
    await peer.send(talk.append("once "))
    sync = Sync(talk.channel, talk.payload("replay", since))
    await scene.reached(talk)
    await peer.send(sync)
    await peer.send(talk.append("twice "))
    await peer.send(sync)
    await scene.goes_on(peer, talk)


@SUITE.case("contiguity.durable", "2.7", "G12")
async def durable(scene: Scene) -> None:
    """The cursor's `durable` is that of the last durable change or sync, and never above the server's."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.put(TextPart(text="a", state="done")))
    await peer.send(talk.title("durable"))
    stored = talk.version
    await peer.send(talk.put(OPEN))
    await peer.send(talk.append("live"))
    await scene.reached(talk)
    peer.drop()
    again = await scene.peer()
    asked = await scene.again(again, talk, cursor=talk.version)
    expect("the cursor's durable", getattr(asked.cursor, "durable", None), stored)
