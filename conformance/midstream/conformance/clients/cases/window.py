"""The range of messages that a replica holds (SPEC 4.4, rules 10 to 12)."""

from msgspec import structs

from midstream.conformance.clients.cases.talks import DONE, OPEN, long, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.frames import Change, ChangeContent, Sync
from midstream.protocol.model import TextPart


@SUITE.case("window.begins", "4.2", "G7")
async def begins(scene: Scene) -> None:
    """A reset with more below begins the window at its first message; else at the session's first."""
    talk = long(6)
    await scene.open(talk, limit=2)
    state = await scene.reached(talk, first=5)
    expect("has_earlier", state.has_earlier, True)
    other = streaming("s2", channel=2)
    await scene.hold(other)
    await scene.sync(scene.server.peers[-1], other)
    state = await scene.reached(other, first=1)
    expect("has_earlier", state.has_earlier, False)


@SUITE.case("window.below", "4.4", "R3")
async def below(scene: Scene) -> None:
    """A message below the window that grows or changes is ignored; the version goes on."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    await peer.send(talk.put(OPEN, sequence=2))
    await peer.send(talk.append("unseen", sequence=2))
    await peer.send(talk.put(DONE, sequence=4, durable=True))
    await scene.reached(talk, first=5)
    await peer.send(talk.short("seen"))
    await scene.goes_on(peer, talk)


@SUITE.case("window.reset_empties", "4.4", "G7")
async def reset_empties(scene: Scene) -> None:
    """A reset leaves nothing of what was there: no message, no turn, no older end of the window."""
    talk = long(6)
    peer = await scene.open(talk, limit=6)
    await scene.reached(talk, first=1)
    talk.title("later")
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=2)))
    await scene.reached(talk, first=5)
    await peer.send(talk.append("unseen", sequence=6))
    await scene.goes_on(peer, talk)
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=3)))  # at a version that was reached
    await scene.until(
        talk, lambda shown: len(shown.digests) == 3, "what the reset at its own version brought"
    )
    await scene.goes_on(peer, talk)


@SUITE.case("window.not_open", "4.4", "R3")
async def not_open(scene: Scene) -> None:
    """After a reset without messages that has more, the window is not open: what comes is ignored."""
    talk = long(4)
    peer = await scene.open(talk)
    talk.title("later")
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=0)))
    state = await scene.reached(talk)
    expect("messages", state.digests, [])
    await peer.send(talk.short("text"))
    await peer.send(talk.user("a new one"))
    state = await scene.goes_on(peer, talk)
    expect("messages", state.digests, [])
    if "pages" in scene.driver.ready.can:
        loading, call = await scene.page(peer, talk, 3)
        expect("before_sequence of the first page", call.value("before_sequence"), None)
        await peer.answer(call, talk.page(3, None))
        await loading
        await scene.reached(talk, first=3)
        await peer.send(talk.user("another new one"))
        await scene.reached(talk, first=3)


@SUITE.case("window.opens_empty", "4.4")
async def opens_empty(scene: Scene) -> None:
    """Where everything was cleared the window opens: the next message is held."""
    talk = long(4)
    peer = await scene.open(talk)
    talk.title("later")
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=0)))
    await scene.reached(talk)
    await peer.send(talk.clear())
    await scene.reached(talk)
    await peer.send(talk.user("first"))
    state = await scene.goes_on(peer, talk)
    expect("the messages", [number for number, _, _ in state.digests], [5])


@SUITE.case("window.clear", "10.1", "R11")
async def clear(scene: Scene) -> None:
    """A clear drops all messages below the new `first_sequence`, and later ones are held."""
    talk = long(5)
    talk.finish()
    peer = await scene.open(talk, limit=3)
    await peer.send(talk.clear())
    state = await scene.reached(talk)
    expect("the messages", state.digests, [])
    expect("has_earlier", state.has_earlier, False)
    await peer.send(talk.user("first"))
    await peer.send(talk.agent(OPEN))
    await peer.send(talk.short("text"))
    await scene.goes_on(peer, talk)
    await scene.reached(talk, first=6)


@SUITE.case("window.clear_and_more", "4.4")
async def clear_and_more(scene: Scene) -> None:
    """A newer session is taken before the messages beside it, of which it may drop some."""
    talk = long(4)
    talk.finish()
    peer = await scene.open(talk)
    old = talk.last
    session = structs.replace(talk.now.session, first_sequence=5)
    change = talk.change(talk.new_message("user", TextPart(text="new")), session=session)
    entry = structs.replace(
        change.content.messages[0], sequence=4, message_id=old.message_id, part_count=1, parts=old.parts
    )
    messages = [entry, *change.content.messages]
    content = ChangeContent(messages=messages, session=talk.now.session)
    await peer.send(Change(talk.channel, change.version, True, content))
    await scene.goes_on(peer, talk)
    await scene.reached(talk, first=5)


@SUITE.case("window.cleared_while_away", "10.1")
async def cleared_while_away(scene: Scene) -> None:
    """A clear that was missed comes with the sync, and what was held leaves the replica."""
    talk: Conversation = long(4)
    talk.finish()
    peer = await scene.open(talk)
    peer.drop()
    talk.clear()
    talk.user("after")
    again = await scene.peer()
    await scene.sync(again, talk)
    await scene.goes_on(again, talk)
    await scene.reached(talk, first=5)
