"""Frames and chunks (SPEC 3.2, 3.3), whatever the network does to their bytes."""

from __future__ import annotations

from functools import partial

from midstream.conformance.case import Case
from midstream.conformance.outcome import Failed, expect, require
from midstream.conformance.proxy import Faults
from midstream.conformance.servers.frame import Frame, Plain
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.chunks import chunks
from midstream.protocol.codec import CODECS, JSON, MSGPACK

case = SUITE.case

BROKEN: list[tuple[str, bytes | None, str | None]] = [
    ("empty", b"", ""),
    ("cut-off", b"\x94\xa4call\x07\xa4tu", '["call",7,"turn",{"sess'),
    ("unused-code", b"\xc1", "[nope]"),
    ("map", b"\x81\xa4call\x07", '{"call":7}'),
    ("number", b"\x07", "7"),
    ("empty-array", b"\x90", "[]"),
    ("number-as-tag", b"\x92\x07\xa4call", '[7,"call"]'),
    ("two-in-one", b"\x92\xa4ping\x01\x92\xa4ping\x02", '["ping",1]["ping",2]'),
    ("deep", b"\x91" * 50_000, "[" * 50_000),
    ("promise-of-4-gb", b"\xdd\xff\xff\xff\xff\xa4call", None),
    ("chunk-of-a-number", b"\x94\xa5chunk\x01\xc3\x07", '["chunk",1,true,7]'),
    ("chunk-without-piece", b"\x94\xa5chunk\x01\xc3\xc4\x00", '["chunk",1,true,""]'),
]
"""Broken framing, in msgpack and in JSON: each a name and the message as it stands."""


def _broken(name: str, packed: bytes | None, text: str | None) -> Case[Scene]:
    async def run(scene: Scene) -> None:
        for codec in CODECS.values():
            message = packed if codec.binary else text
            if message is None:
                continue
            peer = await scene.open(codec)
            await peer.send_raw(message)
            frame = await peer.until(lambda one: one.tag == "error", "an error frame")
            expect(
                "the error of broken framing", (frame.plain[1], frame.plain[2]["code"]), (None, "malformed")
            )
            expect("the close code of broken framing", await peer.ended(), 4500)

    title = f"Broken framing ({name}) is answered by `malformed` and ends the connection with 4500."
    return Case(id=f"framing.broken-{name}", title=title, section="3.2", guarantees=("G16",), run=run)


for _one in BROKEN:
    SUITE.add(_broken(*_one))


@case("framing.other-kind", "3.1")
async def messages_of_the_other_kind_are_broken(scene: Scene) -> None:
    """Text on msgpack, and binary on JSON, is broken framing."""
    for codec, message in ((MSGPACK, '["ping",1]'), (JSON, b'["ping",1]')):
        peer = await scene.open(codec)
        await peer.send_raw(message)
        expect("the close code", await peer.ended(), 4500)


def _names(tag: str, frame: Frame) -> bool:
    return frame.tag == "error" and frame.plain[2].get("details", {}).get("tag") == tag


@case("framing.unknown-tag", "3.2", "G16")
async def unknown_tags_are_refused_by_name(scene: Scene) -> None:
    """An unknown tag is answered with `unknown_frame`, names it, and keeps the connection."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        for tag in ("shout", "welcome"):
            await peer.send(tag, 1)
            frame = await peer.until(partial(_names, tag), f"unknown_frame {tag}")
            expect("the code", (frame.plain[1], frame.plain[2]["code"]), (None, "unknown_frame"))
        await peer.ping()


@case("framing.extra-elements", "3.2")
async def extra_elements_and_keys_are_ignored(scene: Scene) -> None:
    """Extra elements at the end of a frame, and unknown keys of a map, are ignored."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        session = scene.new_id()
        await peer.call("sessions.create", session_id=session, of_the_future=[1])
        id = await peer.begin("sessions.get", session_id=session)
        await peer.answer(id)
        peer.expect_pong(77)
        await peer.send("ping", 77, "and more", {"of": "it"})
        await peer.until(lambda one: one.tag == "pong" and one.plain[1] == 77, "a pong")


@case("framing.wrong-elements", "3.2", "G16")
async def wrong_elements_are_refused_and_named(scene: Scene) -> None:
    """A known frame with a wrong element is `invalid`, names it, and the connection stays."""
    wrong: list[tuple[Plain, None, str]] = [
        (["ping", -1], None, "nonce"),
        (["call", "7", "turn", {}], None, "id"),
        (["call", -7, "turn", {}], None, "id"),
        (["call", 2**53, "turn", {}], None, "id"),
    ]
    for codec in CODECS.values():
        peer = await scene.open(codec)
        for frame, id, field in wrong:
            since = len(peer.frames)
            await peer.send(*frame)
            answer = await peer.until(lambda one: one.tag == "error", f"an error to {frame}", since=since)
            seen = (answer.plain[1], answer.plain[2]["code"], answer.plain[2].get("details", {}).get("field"))
            expect(f"the error to {frame}", seen, (id, "invalid", field))
        await peer.ping()


@case("framing.id-in-use", "3.9", "G16")
async def the_id_of_an_open_call_is_not_given_again(scene: Scene) -> None:
    """A call under the id of one that is unanswered is `invalid` with id `null`; the first is answered."""
    peer = await scene.open()
    session = await scene.session(peer)
    packed = [peer.codec.encode(["call", 900, "sessions.update", {"session_id": session, "title": "t"}])] * 2
    peer.expect_answer(900, "sessions.update", session)
    for data in packed:
        await peer.send_raw(data)
    frame = await peer.until(
        lambda one: one.tag in {"result", "error"} and one.plain[1] in {900, None}, "an answer"
    )
    if frame.tag == "error":
        expect(
            "the refusal",
            (frame.plain[1], frame.plain[2]["code"], frame.plain[2]["details"].get("field")),
            (None, "invalid", "id"),
        )
    await peer.answer(900)


@case("framing.chunks-in", "3.3")
async def long_frames_go_in_chunks(scene: Scene) -> None:
    """A call in chunks is taken as one frame, and pings pass between its pieces."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        session = await scene.session(peer)
        metadata = {"text": '€ä😀"\\' * 600}
        data = codec.encode(["call", 500, "sessions.update", {"session_id": session, "metadata": metadata}])
        peer.expect_answer(500, "sessions.update", session)
        for piece in chunks(data, n=7, chunk_bytes=1_000, codec=codec):
            await peer.send_raw(piece if codec.binary else piece.decode())
            await peer.ping()
        result = await peer.answer(500)
        expect("what the frame carried", result["session"]["metadata"], metadata)


@case("framing.chunks-out", "3.3", "R30")
async def long_answers_come_in_chunks(scene: Scene) -> None:
    """An answer above `chunk_bytes` comes in chunks, in its place, in both encodings."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        session = await scene.session(peer)
        size = peer.limit("chunk_bytes")
        parts = [
            {"type": "data", "data_type": "x", "data": "é" * (size // 2)},
            {"type": "text", "text": "x" * size},
        ]
        await peer.call("prompt", session_id=session, message_id="m1", parts=parts)
        answer = await peer.call("message", session_id=session, message_id="m1")
        require(peer.joined, "an answer of that length comes in chunks", seen=peer.frames[-1].tag)
        expect(
            "the text",
            [one.get("data", one.get("text")) for one in answer["message"]["parts"]],
            ["é" * (size // 2), "x" * size],
        )


@case("framing.chunks-and-the-stream", "3.3", "R30", needs=["agent"])
async def nothing_of_the_session_passes_a_long_frame(scene: Scene) -> None:
    """While a long answer goes in chunks, frames of its session wait behind the last piece."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.text("x" * (peer.limit("chunk_bytes") * 3))
    await held.taken()
    reader = await scene.follow(peer, session)
    part = await held.text("")
    for _ in range(30):
        ids = [await peer.begin("messages", session_id=session, limit=5)]
        await held.append(part, "more ")
        for id in ids:
            await peer.answer(id)
    await held.end()
    await scene.same(reader, peer)


@case("framing.chunk-of-others", "3.3", "G16")
async def only_calls_go_in_chunks(scene: Scene) -> None:
    """A ping in a chunk is `invalid`; the connection stays."""
    peer = await scene.open()
    await peer.send("chunk", 1, True, peer.codec.encode(["ping", 5]))  # last
    frame = await peer.until(lambda one: one.tag == "error", "an error")
    expect("the code", frame.plain[2]["code"], "invalid")
    await peer.ping()


@case("framing.too-long", "3.3", "G16")
async def a_frame_that_is_too_long_is_dropped(scene: Scene) -> None:
    """A frame that grows past `frame_bytes` is `limit_exceeded`, by name; the connection stays."""
    peer = await scene.open()
    limit = peer.limit("frame_bytes")
    if limit > 8 * 2**20:
        return
    peer.expect_answer(600, "sessions.list")
    await peer.send("call", 600, "sessions.list", {"after": "x" * (limit + 10)})
    frame = await peer.until(lambda one: one.tag == "error" and one.plain[1] is None, "an error with id null")
    expect(
        "the error",
        (frame.plain[2]["code"], frame.plain[2]["details"].get("limit")),
        ("limit_exceeded", "frame_bytes"),
    )
    await peer.ping()
    await peer.call("sessions.list")


@case("framing.odd-borders", "3.2")
async def bytes_may_come_in_any_pieces(scene: Scene) -> None:
    """Bytes that arrive one, two or seven at a time make the same frames."""
    for size in (1, 2, 7):
        proxy = await scene.proxy()
        proxy.set(up=Faults(split=size), down=Faults(split=size))
        peer = await scene.open(url=proxy.url)
        session = await scene.session(peer, title="split")
        reader = await scene.follow(peer, session)
        await peer.call("sessions.update", session_id=session, title="in pieces")
        expect("the title in the replica", reader.session["title"], "in pieces")


@case("framing.cut-anywhere", "3.6", "G16", "G17")
async def half_a_frame_does_nothing(scene: Scene) -> None:
    """A connection that is cut in the middle of a call leaves the session as it was, or the call whole."""
    safe = await scene.open()
    session = await scene.session(safe)
    for after in range(40, 400, 37):
        proxy = await scene.proxy()
        peer = await scene.open(url=proxy.url)
        passed = proxy.connections[0].passed["up"]
        proxy.set(up=Faults(cut_after=passed + after))
        message_id = scene.new_id("m")
        await peer.begin("sessions.update", session_id=session, title=message_id, metadata={"x": "y" * 250})
        await peer.ended()
        state = (await safe.call("sessions.get", session_id=session))["session"]
        if state.get("title") == message_id and state.get("metadata") != {"x": "y" * 250}:
            raise Failed(
                "a call is carried out whole, or not at all", expected="title and metadata", seen=state
            )
        require(
            state.get("title") != message_id or after > 250, "half a frame is no call", seen=(after, state)
        )


@case("framing.twice", "3.9", "G3")
async def a_doubled_connection_does_no_harm(scene: Scene) -> None:
    """A client whose bytes arrive twice, over two connections, makes one message of one prompt."""
    proxy = await scene.proxy()
    safe = await scene.open()
    session = await scene.session(safe)
    proxy.doubled = True
    peer = await scene.open(url=proxy.url)
    await peer.call(
        "prompt", session_id=session, message_id="twice", parts=[{"type": "text", "text": "once"}]
    )
    items = await scene.copy(safe, session)
    expect("messages of the prompt", [one["message_id"] for one in items if one["role"] == "user"], ["twice"])
