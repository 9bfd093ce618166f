"""What cannot fit: the replica is wrong, and begins anew (SPEC 4.4, rules 9 and 17)."""

from msgspec import UNSET, structs

from midstream.conformance.clients.cases.talks import DONE, OPEN, TOOL, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.protocol.frames import (
    Change,
    ChangeContent,
    Delta,
    MessageEntry,
    ShortDelta,
    Sync,
    SyncPayload,
)
from midstream.protocol.model import Part


async def restarts(scene: Scene, talk: Conversation, frame: object, *, before: int) -> None:
    """Send a frame that cannot fit; the client subscribes without a cursor, and shows what it showed."""
    peer = scene.server.peers[-1]
    await peer.send(frame)
    call, asked = await scene.subscribed(peer)
    scene.expect_cursor(talk, asked, None)
    await scene.stays(talk, before)
    await scene.answer_sync(peer, call, talk)
    await scene.reached(talk)
    await scene.goes_on(peer, talk)


def entry_of(talk: Conversation, *parts: Part, part_count: int | None = None) -> Change:
    """Let the last message change in a way that the entry given tells, whatever is true."""
    last = talk.last
    talk.title("another title")
    entry = MessageEntry(
        sequence=last.sequence,
        updated_at=last.updated_at,
        part_count=len(last.parts) if part_count is None else part_count,
        parts=list(parts),
    )
    content = ChangeContent(messages=[entry], session=talk.now.session)
    return Change(talk.channel, talk.version, True, content)


@SUITE.case("misfits.hole", "4.4")
async def hole(scene: Scene) -> None:
    """A part that would leave a hole is a restart, and nothing else of its change is applied."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    part = structs.replace(DONE, part_id="far", sequence=3)
    await restarts(scene, talk, entry_of(talk, part, part_count=3), before=before)


@SUITE.case("misfits.part_count", "4.4")
async def part_count(scene: Scene) -> None:
    """A `part_count` above what is there is a restart."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    await restarts(scene, talk, entry_of(talk, part_count=4), before=before)


@SUITE.case("misfits.unknown_message", "4.4")
async def unknown_message(scene: Scene) -> None:
    """An entry of a message inside the window that is not there, and is not whole, is a restart."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    talk.agent(DONE)
    talk.put(DONE)
    last = talk.last
    entry = MessageEntry(sequence=3, updated_at=last.updated_at, part_count=2, parts=[last.parts[1]])
    frame = Change(talk.channel, before + 1, False, ChangeContent(messages=[entry]))
    await restarts(scene, talk, frame, before=before)


@SUITE.case("misfits.unknown_delta", "4.4")
async def unknown_delta(scene: Scene) -> None:
    """A delta to a message inside the window that is not there is a restart."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    talk.agent(OPEN)
    await restarts(scene, talk, Delta(talk.channel, before + 1, 7, 3, 1, "text"), before=before)


@SUITE.case("misfits.no_such_part", "4.4")
async def no_such_part(scene: Scene) -> None:
    """Text for a part that is not there is a restart."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    talk.put(OPEN)
    await restarts(scene, talk, Delta(talk.channel, before + 1, 14, 2, 2, "text"), before=before)


@SUITE.case("misfits.closed_part", "4.4", "G9")
async def closed_part(scene: Scene) -> None:
    """Text for a part that cannot grow is a restart, in either form of a delta."""
    for short in (False, True):
        talk = streaming("short" if short else "long")
        talk.finish()
        if short:
            await scene.hold(talk)
            await scene.sync(scene.server.peers[-1], talk)
            await scene.reached(talk)
        else:
            await scene.open(talk)
        before = talk.version
        talk.title("other")
        late = ShortDelta(1, before + 1, 7, "late") if short else Delta(1, before + 1, 14, 2, 1, "late")
        await restarts(scene, talk, late, before=before)
        await scene.tell("leave", session=talk.session_id)


@SUITE.case("misfits.another_id", "4.4", "G13")
async def another_id(scene: Scene) -> None:
    """Another `message_id` for the same sequence is a restart."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    frame = entry_of(talk)
    entry = structs.replace(frame.content.messages[0], message_id="somebody_else")
    frame = structs.replace(frame, content=structs.replace(frame.content, messages=[entry]))
    await restarts(scene, talk, frame, before=before)


@SUITE.case("misfits.appends", "4.4")
async def appends(scene: Scene) -> None:
    """A replay that appends to a part that is not there, or ends a tool like a text, is a restart."""
    for case in ("appends", "ended"):
        talk = streaming(case)
        talk.put(TOOL)
        if scene.server.peers:
            await scene.hold(talk)
            await scene.sync(scene.server.peers[-1], talk)
            await scene.reached(talk)
        else:
            await scene.open(talk)
        before = talk.version
        talk.title("other")
        entry = MessageEntry(
            sequence=2,
            updated_at=talk.last.updated_at,
            part_count=2,
            appends=[(3, "text")] if case == "appends" else [],
            ended=[2] if case == "ended" else [],
        )
        payload = SyncPayload(
            mode="replay",
            from_version=before,
            epoch=talk.now.epoch,
            version=talk.version,
            durable=UNSET,
            session=talk.now.session,
            messages=[entry],
        )
        await restarts(scene, talk, Sync(talk.channel, payload), before=before)
        await scene.tell("leave", session=talk.session_id)


@SUITE.case("misfits.half_a_change", "4.4", "R2")
async def half_a_change(scene: Scene) -> None:
    """A change of two messages, of which the second cannot fit, is not applied to the first either."""
    talk = streaming()
    await scene.open(talk)
    before = talk.version
    first, last = talk.now.messages[1], talk.last
    talk.title("other")
    entries = [
        MessageEntry(
            sequence=1,
            updated_at=first.updated_at + 1,
            part_count=1,
            parts=[structs.replace(DONE, text="other", state=UNSET, part_id="m1_p1", sequence=1)],
        ),
        MessageEntry(sequence=2, updated_at=last.updated_at, part_count=9),
    ]
    content = ChangeContent(messages=entries, session=talk.now.session)
    await restarts(scene, talk, Change(talk.channel, talk.version, True, content), before=before)
