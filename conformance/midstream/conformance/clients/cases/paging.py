"""Pages of earlier messages (SPEC 4.4, rules 13 to 16; 3.7)."""

import asyncio

import msgspec
from msgspec import UNSET, structs

from midstream.conformance.clients.cases.talks import DONE, OPEN, THOUGHT, long
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Asked, Peer
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import Failed, expect
from midstream.protocol.calls import MessagesParams
from midstream.protocol.frames import Sync
from midstream.protocol.model import TextPart

PAGES = ["pages"]


async def give(peer: Peer, talk: Conversation, call: Asked) -> None:
    """Answer a ``messages`` call as it should be."""
    asked = call.params
    if isinstance(asked, MessagesParams):
        before = None if asked.before_sequence is UNSET else asked.before_sequence
        await peer.answer(call, talk.page(asked.limit, before))


async def finish(scene: Scene, peer: Peer, talk: Conversation, loading: asyncio.Task[msgspec.Raw]) -> int:
    """Answer what the client asks, until its page is loaded; return how often it asked."""
    asked = 0
    while not loading.done():
        call = asyncio.create_task(scene.call(peer, "messages"))
        await asyncio.wait({loading, call}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            call.cancel()
            break
        asked += 1
        await give(peer, talk, call.result())
    await loading
    return asked


@SUITE.case("paging.joins", "4.2", "G14", needs=PAGES)
async def joins(scene: Scene) -> None:
    """Pages join below the window, one after the other, down to the first message."""
    talk = long(7)
    peer = await scene.open(talk, limit=2)
    for first, before in ((4, 6), (2, 4), (1, 2)):
        loading, call = await scene.page(peer, talk, 2)
        expect("before_sequence", call.value("before_sequence"), before)
        await give(peer, talk, call)
        await loading
        await scene.reached(talk, first=first)
    state = await scene.shown(talk)
    expect("has_earlier", state.has_earlier, False)
    await peer.send(talk.put(DONE, sequence=2))
    await scene.goes_on(peer, talk)


@SUITE.case("paging.while_it_streams", "4.4", "G14", "R14", needs=PAGES)
async def while_it_streams(scene: Scene) -> None:
    """What comes while a page is under way is applied once, to the page's messages too."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    loading, call = await scene.page(peer, talk, 2)
    await peer.send(talk.short("in the window "))
    await peer.send(talk.put(OPEN, sequence=4))
    await peer.send(talk.append("below it ", sequence=4))
    await give(peer, talk, call)
    await loading
    await scene.reached(talk, first=3)
    await peer.send(talk.append("and on", sequence=4))
    await scene.goes_on(peer, talk)


@SUITE.case("paging.at_another_version", "4.4", "R11", "R25", needs=PAGES)
async def at_another_version(scene: Scene) -> None:
    """A page of an earlier version is brought up to date by what came since, or is read again."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    loading, call = await scene.page(peer, talk, 2)
    await peer.send(talk.put(OPEN, sequence=4))
    await peer.send(talk.append("in the page ", sequence=4))
    version = talk.version
    await peer.send(talk.append("after it ", sequence=4))
    await peer.send(talk.put(THOUGHT, sequence=4))
    await peer.send(talk.title("a title"))
    await peer.send(talk.append("last", sequence=6))
    await peer.answer(call, talk.page(2, 5, version=version))
    await finish(scene, peer, talk, loading)
    await scene.goes_on(peer, talk)
    await scene.reached(talk, first=3)


@SUITE.case("paging.before_a_sync", "4.4", "R11", needs=PAGES)
async def before_a_sync(scene: Scene) -> None:
    """A page from before a sync that came since does not join as it is."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    loading, call = await scene.page(peer, talk, 2)
    version = talk.version
    talk.put(DONE, sequence=4)
    await peer.send(Sync(talk.channel, talk.payload("replay", version)))
    await scene.reached(talk)
    await peer.answer(call, talk.page(2, 5, version=version))
    await finish(scene, peer, talk, loading)
    await scene.goes_on(peer, talk)
    await scene.reached(talk, first=3)


@SUITE.case("paging.ahead", "4.7", "R14", needs=PAGES)
async def ahead(scene: Scene) -> None:
    """A page above the version reached shows a loss: the client subscribes with its cursor."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    before = talk.version
    loading, call = await scene.page(peer, talk, 2)
    talk.put(DONE, sequence=4)
    await give(peer, talk, call)
    await scene.again(peer, talk, cursor=before)
    await finish(scene, peer, talk, loading)
    await scene.reached(talk, first=3)


@SUITE.case("paging.of_another_place", "4.4", needs=PAGES)
async def of_another_place(scene: Scene) -> None:
    """A page that does not end where the window begins is dropped, and the window stays."""
    talk = long(8)
    peer = await scene.open(talk, limit=2)
    loading, call = await scene.page(peer, talk, 2)
    await peer.answer(call, talk.page(2, 5))
    await scene.heard(peer)
    state = await scene.shown(talk)
    expect("the first message", state.digests[0][0], 7)
    await finish(scene, peer, talk, loading)
    await scene.goes_on(peer, talk)
    state = await scene.shown(talk)
    if state.digests[0][0] not in {5, 7}:
        raise Failed("the window was moved by a page of another place", seen=state.digests)


@SUITE.case("paging.of_another_view", "4.4", "G20", needs=PAGES)
async def of_another_view(scene: Scene) -> None:
    """A page of another epoch or another view is read again."""
    talk = long(6)
    peer = await scene.open(talk, limit=2)
    loading, call = await scene.page(peer, talk, 2)
    await peer.answer(call, structs.replace(talk.page(2, 5), epoch="ffffffffffffffff"))
    call = await scene.call(peer, "messages")
    await peer.answer(call, structs.replace(talk.page(2, 5), include_internal=True))
    call = await scene.call(peer, "messages")
    state = await scene.shown(talk)
    expect("the first message", state.digests[0][0], 5)
    await give(peer, talk, call)
    await loading
    await scene.reached(talk, first=3)


@SUITE.case("paging.reset_meanwhile", "4.4", needs=PAGES)
async def reset_meanwhile(scene: Scene) -> None:
    """A page for a window that a reset has moved since is dropped."""
    talk = long(9)
    peer = await scene.open(talk, limit=3)
    loading, call = await scene.page(peer, talk, 2)
    talk.title("later")
    await peer.send(Sync(talk.channel, talk.payload("reset", limit=2)))
    await scene.reached(talk, first=8)
    await peer.answer(call, talk.page(2, 7))
    await finish(scene, peer, talk, loading)
    await scene.goes_on(peer, talk)


@SUITE.case("paging.cleared_meanwhile", "4.4", "R11", needs=PAGES)
async def cleared_meanwhile(scene: Scene) -> None:
    """A clear while a page is under way leaves nothing of what was cleared, whichever comes first."""
    for page_first in (True, False):
        talk = long(6)
        talk.finish()
        talk = rename(talk, "first" if page_first else "second")
        if scene.server.peers:
            peer = scene.server.peers[-1]
            await scene.hold(talk, limit=2)
            await scene.sync(peer, talk)
            await scene.reached(talk)
        else:
            peer = await scene.open(talk, limit=2)
        loading, call = await scene.page(peer, talk, 2)
        page = talk.page(2, 5)
        if page_first:
            await peer.answer(call, page)
            await peer.send(talk.clear())
        else:
            await peer.send(talk.clear())
            await peer.answer(call, page)
        await finish(scene, peer, talk, loading)
        state = await scene.reached(talk)
        expect("the messages", state.digests, [])
        await peer.send(talk.user("after"))
        await scene.goes_on(peer, talk)


@SUITE.case("paging.turns", "4.4", "G5", needs=PAGES)
async def turns(scene: Scene) -> None:
    """The turns of a page join by their revisions: an older copy does not replace a newer."""
    talk = Conversation()
    talk.begin_turn("t1", talk.new_message("user", TextPart(text="one"), turn_id="t1"))
    talk.agent(OPEN, turn_id="t1")
    early = talk.now.turns["t1"]
    talk.end_turn("t1")
    talk.begin_turn("t2", talk.new_message("user", TextPart(text="two"), turn_id="t2"))
    talk.agent(DONE, turn_id="t1")
    peer = await scene.open(talk, limit=1)
    loading, call = await scene.page(peer, talk, 2)
    page = talk.page(2, 4)
    old = [early if turn.turn_id == "t1" else turn for turn in page.turns]
    await peer.answer(call, structs.replace(page, turns=old))
    await loading
    await scene.goes_on(peer, talk)


@SUITE.case("paging.limits", "11.2", needs=PAGES)
async def limits(scene: Scene) -> None:
    """A client asks for no more messages than the server's `page_messages`."""
    scene.server.limits = structs.replace(scene.server.limits, page_messages=3)
    talk = long(9)
    await scene.connect()
    await scene.hold(talk, limit=50)
    peer = await scene.peer()
    asked = await scene.sync(peer, talk)
    if asked.limit is UNSET or asked.limit > 3:
        raise Failed("the limit of subscribe is above page_messages", expected=3, seen=asked.limit)
    await scene.reached(talk, first=7)
    loading, call = await scene.page(peer, talk, 100)
    expect("the limit of messages", call.value("limit"), 3)
    await give(peer, talk, call)
    await loading
    await scene.reached(talk, first=4)


def rename(talk: Conversation, session_id: str) -> Conversation:
    """Return a session like this one under another id."""
    other = Conversation(session_id, channel=2 if session_id == "second" else 1)
    for message in talk.now.messages.values():
        other.change(structs.replace(message, session_id=session_id))
    return other
