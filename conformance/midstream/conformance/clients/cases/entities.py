"""How sessions, turns and messages merge (SPEC 4.4, rules 5 to 8 and 17)."""

from msgspec import UNSET, structs

from midstream.conformance.clients.cases.talks import DONE, OPEN, THOUGHT, TOOL, in_turn, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.differences import whole
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.frames import Change, ChangeContent, MessageEntry, Sync, SyncPayload
from midstream.protocol.model import TextPart, ToolPart


@SUITE.case("entities.old_session", "4.4", "R25", "G5")
async def old_session(scene: Scene) -> None:
    """A session of a lower revision than the replica's does not replace it."""
    talk = Conversation()
    old = talk.now.session
    talk.title("newer")
    peer = await scene.open(talk)
    talk.skip()
    await peer.send(Change(talk.channel, talk.version, True, ChangeContent(session=old)))
    await scene.reached(talk)
    await scene.goes_on(peer, talk)


@SUITE.case("entities.old_turn", "4.4", "R25", "G5")
async def old_turn(scene: Scene) -> None:
    """A turn of a lower revision than the replica's does not replace it."""
    talk = in_turn()
    old = talk.now.turns["t1"]
    talk.end_turn("t1")
    peer = await scene.open(talk)
    talk.skip()
    await peer.send(Change(talk.channel, talk.version, True, ChangeContent(turns=[old])))
    await scene.reached(talk)
    await scene.goes_on(peer, talk)


@SUITE.case("entities.old_message", "4.4", "R25", "G5")
async def old_message(scene: Scene) -> None:
    """An entry in a sync whose revision is not above that of the message is ignored."""
    talk = streaming()
    since = talk.version
    talk.append("first ")
    old = talk.last
    talk.append("second ")
    peer = await scene.open(talk)
    talk.skip()
    entry = structs.replace(whole(old), revision=old.revision)
    payload = SyncPayload(
        mode="catchup", from_version=since, epoch=talk.now.epoch, version=talk.version, messages=[entry]
    )
    await peer.send(Sync(talk.channel, payload))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.own_revision", "3.4", "G5")
async def own_revision(scene: Scene) -> None:
    """A message gets the revision that its entry in a sync names; else the sync's version."""
    talk = streaming()
    peer = await scene.open(talk)
    peer.drop()
    talk.append("text")
    talk.title("later")
    again = await scene.peer()
    await scene.sync(again, talk)
    await scene.reached(talk)
    await again.send(talk.append(" on"))
    await scene.goes_on(again, talk)


@SUITE.case("entities.appends_once", "4.4", "R20")
async def appends_once(scene: Scene) -> None:
    """Text that a replay appends to a message above its `from` is a gap, and is not appended twice."""
    talk = streaming()
    peer = await scene.open(talk)
    since = talk.version
    await peer.send(talk.append("once "))
    await scene.reached(talk)
    before = talk.version
    talk.append("more")
    await peer.send(Sync(talk.channel, talk.payload("replay", since)))
    await scene.again(peer, talk, cursor=before)
    await scene.goes_on(peer, talk)


@SUITE.case("entities.ended_once", "4.4")
async def ended_once(scene: Scene) -> None:
    """An end that a replay tells of a message above its `from` is a gap."""
    talk = streaming()
    peer = await scene.open(talk)
    since = talk.version
    await peer.send(talk.put(THOUGHT))
    await scene.reached(talk)
    before = talk.version
    talk.finish()
    last = talk.last
    entry = MessageEntry(
        sequence=last.sequence, updated_at=last.updated_at, state="done", part_count=2, ended=[1, 2]
    )
    payload = SyncPayload(
        mode="replay", from_version=since, epoch=talk.now.epoch, version=talk.version, messages=[entry]
    )
    await peer.send(Sync(talk.channel, payload))
    await scene.again(peer, talk, cursor=before)


@SUITE.case("entities.fewer_parts", "4.4", "R5")
async def fewer_parts(scene: Scene) -> None:
    """Parts above `part_count` are dropped, and others take their places later."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.put(DONE, DONE, OPEN))
    await peer.send(talk.short("gone"))
    await scene.reached(talk)
    await peer.send(talk.trim(2))
    await scene.reached(talk)
    await peer.send(talk.put(OPEN))
    await peer.send(talk.short("instead"))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.whole_parts", "4.4", "R8")
async def whole_parts(scene: Scene) -> None:
    """A part that comes whole replaces the one of its sequence; its text may be shorter, and go on."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("a long text that will be taken back"))
    await peer.send(talk.put(structs.replace(talk.last.parts[0], text="short"), durable=True))
    await peer.send(talk.short(" again"))
    await scene.reached(talk)
    await peer.send(talk.put(structs.replace(talk.last.parts[0], text="")))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.tool", "2.6", "R8")
async def tool(scene: Scene) -> None:
    """A tool part grows by its `input_text` and moves through its states, while others grow beside it."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.put(TOOL))
    await peer.send(talk.short('{"at":'))
    await peer.send(talk.append("beside ", part=1))
    await peer.send(talk.append(" 1}", part=2))
    await scene.reached(talk)
    part = talk.last.parts[1]
    if isinstance(part, ToolPart):
        for state in ("ready", "running", "completed"):
            output = {"found": [1, 2.5, None]} if state == "completed" else UNSET
            moved = structs.replace(part, state=state, input={"at": 1}, output=output)
            await peer.send(talk.put(moved, durable=True))
            await scene.reached(talk)
    await scene.goes_on(peer, talk)


@SUITE.case("entities.many_at_once", "4.4", "R2")
async def many_at_once(scene: Scene) -> None:
    """A change that touches messages, a turn and the session is applied whole."""
    talk = in_turn()
    peer = await scene.open(talk)
    await peer.send(talk.short("the answer"))
    await peer.send(talk.end_turn("t1"))
    await scene.reached(talk)
    one = talk.new_message("user", TextPart(text="and?"), turn_id="t2")
    two = talk.new_message("agent", OPEN, turn_id="t2", place=2)
    await peer.send(talk.begin_turn("t2", one, two))
    await peer.send(talk.short("so"))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.known_fields_again", "3.4")
async def known_fields_again(scene: Scene) -> None:
    """An entry that gives again what a new message has is merged like any other."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("text"))
    talk.put(DONE)
    entry = whole(talk.last)
    await peer.send(Change(talk.channel, talk.version, False, ChangeContent(messages=[entry])))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.short_delta_place", "3.9", "R58")
async def short_delta_place(scene: Scene) -> None:
    """A short delta goes to the last part of the session's last message, whichever that is when it comes."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.short("first "))
    await peer.send(talk.put(THOUGHT))
    await peer.send(talk.short("second "))
    await peer.send(talk.finish())
    await peer.send(talk.agent(DONE, TOOL))
    await peer.send(talk.short("{}"))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.short_delta_unseen", "3.9", "G20", "R15")
async def short_delta_unseen(scene: Scene) -> None:
    """Where the session's last message is not in this view, text is for the message that its `d` names."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(talk.internal_message("a hint"))
    await peer.send(talk.append("for the one before", sequence=2))
    await scene.goes_on(peer, talk)


@SUITE.case("entities.internal_view", "8.7", "G20", needs=["internal"])
async def internal_view(scene: Scene) -> None:
    """A subscription with internal messages shows them, and pages them."""
    talk = Conversation(internal=True)
    for number in range(3):
        talk.internal_message(f"hint {number}")
        talk.user(f"question {number}")
    talk.agent(OPEN)
    peer = await scene.open(talk, limit=3)
    await peer.send(talk.short("text"))
    await scene.reached(talk, first=5)
    if "pages" in scene.driver.ready.can:
        loading, call = await scene.page(peer, talk, 3)
        await peer.answer(call, talk.page(3, 5))
        await loading
        await scene.reached(talk, first=2)
    await peer.send(talk.internal_message("another hint"))
    state = await scene.goes_on(peer, talk)
    expect("the last message", state.digests[-1][0], 8)
