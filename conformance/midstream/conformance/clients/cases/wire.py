"""Frames: what must be ignored, what must not be guessed, and pieces of long ones (SPEC 3.2, 3.3, 11.2)."""

import msgspec
from msgspec import structs

from midstream.conformance.clients.cases.talks import DONE, streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Peer
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect, require
from midstream.protocol.frames import Call, Change, Ping, Skip
from midstream.protocol.model import TextPart

NOTHING: list[str] = []
EMPTY: dict[str, str] = {}


@SUITE.case("wire.hello", "4.1")
async def hello(scene: Scene) -> None:
    """The first frame is a hello of version 1 with a map; what comes after follows."""
    talk = streaming()
    peer = await scene.open(talk)
    hello = peer.hello
    require(hello is not None, "a hello")
    expect("the version of hello", hello and hello.version, 1)


@SUITE.case("wire.both_encodings", "3.1")
async def both_encodings(scene: Scene) -> None:
    """In either encoding the same frames lead to the same replica."""
    for encoding in ("msgpack", "json"):
        talk = streaming(encoding)
        await scene.connect(encoding="json" if encoding == "json" else "msgpack")
        await scene.hold(talk)
        peer = await scene.peer()
        expect("the encoding", peer.codec.name, encoding)
        await scene.sync(peer, talk)
        await peer.send(talk.short('quotes " \\ and ünï \U0001f600 \u2028'))
        await peer.send(talk.append(" more"))
        await scene.goes_on(peer, talk)
        await scene.tell("close")


@SUITE.case("wire.extra", "3.2")
async def extra(scene: Scene) -> None:
    """Extra elements at the end of a frame, and unknown keys in maps, are ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    for frame in (talk.append("a "), talk.short("b "), talk.put(DONE), talk.skip(), talk.user("c")):
        plain = msgspec.to_builtins(frame)
        if isinstance(frame, Change):
            plain[4]["later"] = {"of": "a newer server"}
            for entry in plain[4].get("messages", []):
                entry["later"] = 1
                for part in entry.get("parts", []):
                    part["later"] = [None]
        await peer.send([*plain, "extra", {"and": 1}])
    await scene.goes_on(peer, talk)


@SUITE.case("wire.unknown_tag", "3.2")
async def unknown_tag(scene: Scene) -> None:
    """A frame whose tag the client does not know, and one of a channel that it does not know, are ignored."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(["brand_new", 1, {"of": "a newer server"}])
    await peer.send(["sessions", {"changed": NOTHING}])
    await peer.send(["signal", 99, "c9", "typing", None])
    await peer.send(["signal", talk.channel, "c9", "typing", {"at": 1}])
    await peer.send(["error", None, {"code": "brand_new", "message": "of no call", "retryable": False}])
    await peer.send(["d", 99, talk.version + 1, 1, 2, 1, "foreign"])
    await peer.send([99, talk.version + 1, 1, "foreign"])
    await peer.send(["mark", 99, talk.version + 9])
    await peer.send(["sync", 99, msgspec.to_builtins(talk.payload("reset", limit=0))])
    await peer.send(["closed", 99, "deleted", False])
    await peer.send(["result", 12345, EMPTY])
    await scene.goes_on(peer, talk)


async def breaks(scene: Scene, payload: bytes) -> None:
    """Send what cannot be read; the client ends the connection, and comes back with its cursor."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    await peer.send_bytes(payload)
    await peer.ended(within=scene.patience)
    await scene.shown(talk)
    again = await scene.peer()
    await scene.again(again, talk, cursor=before)
    await scene.goes_on(again, talk)


def encoded(scene: Scene, frame: object) -> bytes:
    """Encode a frame as the scene's connection does."""
    encode = msgspec.json.encode if scene.settings.encoding == "json" else msgspec.msgpack.encode
    return encode(frame)


@SUITE.case("wire.not_a_frame", "3.2")
async def not_a_frame(scene: Scene) -> None:
    """A message that is no array ends the connection, and the client comes back."""
    await breaks(scene, encoded(scene, {"not": "a frame"}))


@SUITE.case("wire.not_decodable", "3.2")
async def not_decodable(scene: Scene) -> None:
    """A message that is no msgpack or JSON ends the connection, and the client comes back."""
    await breaks(scene, b"[" if scene.settings.encoding == "json" else b"\xc1")


@SUITE.case("wire.not_readable", "3.2")
async def not_readable(scene: Scene) -> None:
    """A frame of a known tag that cannot be read ends the connection; nothing is guessed."""
    await breaks(scene, encoded(scene, ["change", 1, "four", True, EMPTY]))


async def pieces(scene: Scene, peer: Peer, talk: Conversation, text: str, size: int = 200) -> list[bytes]:
    """Return the pieces of a delta."""
    del scene
    return peer.pieces(peer.codec.encode(talk.append(text)), size=size)


@SUITE.case("wire.chunks", "3.3", "R30")
async def chunks(scene: Scene) -> None:
    """A frame in pieces takes the place of its last piece; nothing of it shows before."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    cut = await pieces(scene, peer, talk, "wörds " * 200)
    require(len(cut) > 3, "pieces")
    for piece in cut[:-1]:
        await peer.send_bytes(piece)
    await scene.heard(peer)
    await scene.stays(talk, before)
    await peer.send_bytes(cut[-1])
    await scene.goes_on(peer, talk)


@SUITE.case("wire.chunks_of_two", "3.3", "R30")
async def chunks_of_two(scene: Scene) -> None:
    """Between the pieces of one session's frame come pings, and frames and pieces of another session."""
    talk, other = streaming(), streaming("s2", channel=2)
    peer = await scene.open(talk)
    await scene.hold(other)
    await scene.sync(peer, other)
    await scene.reached(other)
    one = await pieces(scene, peer, talk, "one " * 200)
    two = await pieces(scene, peer, other, "two " * 300)
    for number in range(max(len(one), len(two))):
        for cut in (one, two):
            if number < len(cut):
                await peer.send_bytes(cut[number])
        await peer.send(Ping(number))
        if number == len(two):
            await peer.send(other.short("between"))
    await scene.goes_on(peer, talk)
    await scene.goes_on(peer, other)


@SUITE.case("wire.chunks_lost", "3.3", "R2")
async def chunks_lost(scene: Scene) -> None:
    """A frame of which some pieces came before the connection was lost leaves nothing behind."""
    talk = streaming()
    peer = await scene.open(talk)
    before = talk.version
    cut = await pieces(scene, peer, talk, "lost " * 200)
    for piece in cut[:-1]:
        await peer.send_bytes(piece)
    await scene.heard(peer)
    peer.drop()
    again = await scene.peer()
    await scene.again(again, talk, cursor=before)
    for piece in await pieces(scene, again, talk, "whole " * 200):
        await again.send_bytes(piece)
    await scene.goes_on(again, talk)


@SUITE.case("wire.long_sync", "3.3", "G7")
async def long_sync(scene: Scene) -> None:
    """An answer of more than a mebibyte, which comes in pieces, is taken."""
    talk = Conversation()
    for number in range(3):
        talk.user(f"{number} " + "lörem ipsum " * 40_000)
    peer = await scene.open(talk)
    await scene.goes_on(peer, talk)


@SUITE.case("wire.own_chunks", "3.3")
async def own_chunks(scene: Scene) -> None:
    """A client sends a frame that is longer than the server's `chunk_bytes` in pieces, and none longer."""
    limits = scene.server.limits
    scene.server.limits = structs.replace(limits, chunk_bytes=4096)
    talk = streaming()
    peer = await scene.open(talk)
    text = "wörds 'and' \"more\" \U0001f600 " * 3000
    await scene.tell("prompt", session=talk.session_id, text=text, message_id="long")
    call = await scene.call(peer, "prompt")
    expect("the text of the prompt", call.value("parts"), [{"type": "text", "text": text}])
    require(peer.longest <= 4096, "no message above chunk_bytes", expected=4096, seen=peer.longest)
    await scene.goes_on(peer, talk)


@SUITE.case("wire.calls_in_flight", "11.2")
async def calls_in_flight(scene: Scene) -> None:
    """No more calls are unanswered at a time than the server's `calls_in_flight`."""
    scene.server.limits = structs.replace(scene.server.limits, calls_in_flight=2)
    await scene.connect()
    talks = [streaming(f"s{number}", channel=number) for number in range(5)]
    for talk in talks:
        await scene.hold(talk)
    peer = await scene.peer()
    by_id = {talk.session_id: talk for talk in talks}
    for answered in range(5):
        call, asked = await scene.subscribed(peer)
        await scene.heard(peer)
        calls = sum(isinstance(frame, Call) for frame in peer.frames)
        require(calls <= answered + 2, "calls in flight", expected=2, seen=calls - answered)
        await scene.answer_sync(peer, call, by_id[asked.session_id])
    for talk in talks:
        await scene.reached(talk)
        await peer.send(talk.put(TextPart(text="x", state="done")))
        await peer.send(Skip(talk.channel, talk.version - 1, talk.version))  # seen already
        await scene.goes_on(peer, talk)
