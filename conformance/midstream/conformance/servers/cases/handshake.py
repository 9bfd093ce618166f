"""The handshake, heartbeats and the end of a connection (SPEC 3.1, 3.5, 3.6, 3.9, 4.1)."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from websockets.exceptions import InvalidStatus

from midstream.conformance.outcome import Failed, Skipped, expect, require
from midstream.conformance.proxy import Faults
from midstream.conformance.servers.opening import open_socket
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.codec import CODECS, JSON, MSGPACK
from midstream.protocol.limits import Limits

case = SUITE.case


@case("handshake.welcome", "3.9")
async def welcome_says_all(scene: Scene) -> None:
    """`welcome` has every field of its table, in both encodings."""
    for codec in (MSGPACK, JSON):
        info = (await scene.open(codec)).welcome
        for key, kind in (
            ("connection_id", str),
            ("server", str),
            ("time", int),
            ("heartbeat_ms", int),
            ("limits", dict),
            ("subject", str),
            ("scopes", list),
        ):
            require(isinstance(info.get(key), kind), f"welcome has {key}", expected=kind.__name__, seen=info)
        require(info["heartbeat_ms"] > 0, "a heartbeat is above 0", seen=info)


@case("handshake.limits", "11.2")
async def limits_are_told(scene: Scene) -> None:
    """`welcome` tells every limit, as a positive integer."""
    limits = (await scene.open()).welcome["limits"]
    missing = [
        name for name in Limits.__struct_fields__ if not isinstance(limits.get(name), int) or limits[name] < 1
    ]
    expect("limits that are not told", missing, [])


@case("handshake.connection-ids", "3.9")
async def connections_have_names_of_their_own(scene: Scene) -> None:
    """Two connections have two ids."""
    first, second = await scene.open(), await scene.open()
    require(
        first.welcome["connection_id"] != second.welcome["connection_id"],
        "each connection has its own id",
        seen=first.welcome,
    )


@case("handshake.subprotocol-preferred", "3.1")
async def msgpack_is_preferred(scene: Scene) -> None:
    """Of both subprotocols the server chooses msgpack."""
    socket = await open_socket(scene.target.url, [JSON.subprotocol, MSGPACK.subprotocol])
    chosen = socket.subprotocol
    await socket.close()
    expect("the server's own preference is msgpack", chosen, MSGPACK.subprotocol)


@case("handshake.subprotocol-missing", "3.1")
async def without_a_subprotocol_there_is_no_connection(scene: Scene) -> None:
    """Who offers neither subprotocol is refused in the handshake, by 400."""
    try:
        socket = await open_socket(scene.target.url, ["soap"])
    except InvalidStatus as refused:
        expect("the status of the refusal", refused.response.status_code, 400)
        return
    await socket.close()
    raise Failed("a handshake without a subprotocol of the protocol is refused", expected=400, seen=101)


@case("handshake.health", "3.1")
async def healthz_says_whether_it_serves(scene: Scene) -> None:
    """`GET /healthz` without an upgrade is answered by 200."""
    parts = urlsplit(scene.target.url)
    if parts.scheme == "wss":
        raise Skipped("the kit asks for it without TLS only")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    require(
        b" 200 " in line,
        "the server says that it serves",
        expected="HTTP/1.1 200",
        seen=line.decode("latin-1"),
    )


@case("handshake.compression", "3.1")
async def compression_changes_nothing(scene: Scene) -> None:
    """A client that offers permessage-deflate gets the same frames as one that does not."""
    peer, squeezed = await scene.open(), await scene.open(compression="deflate")
    session = await scene.session(peer, title="x" * 900, metadata={"a": "b" * 9000})
    plain = await peer.call("sessions.get", session_id=session)
    expect(
        "the answer on a compressed connection",
        await squeezed.call("sessions.get", session_id=session),
        plain,
    )


@case("handshake.foreign-origin", "13")
async def foreign_pages_are_kept_out(scene: Scene) -> None:
    """Without tokens, a handshake of a page on another site is refused by 403."""
    if scene.target.token is not None:
        raise Skipped("the server has tokens")
    try:
        socket = await open_socket(scene.target.url, [MSGPACK.subprotocol], origin="https://evil.example")
    except InvalidStatus as refused:
        expect("the status of the refusal", refused.response.status_code, 403)
        return
    await socket.close()
    raise Failed("a page of another site must not connect", expected=403, seen=101)


@case("handshake.hello-expected", "4.1")
async def another_first_frame_ends_it(scene: Scene) -> None:
    """A first frame that is no `hello` closes the connection with 4501."""
    for codec in CODECS.values():
        peer = await scene.open(codec, hello=False)
        await peer.send("call", 1, "sessions.list", {})
        expect("the close code", await peer.ended(), 4501)


@case("handshake.hello-too-long", "11.2")
async def a_long_hello_ends_it(scene: Scene) -> None:
    """A `hello` above `hello_bytes` closes the connection with 4501."""
    limit = scene.target.welcome["limits"]["hello_bytes"]
    peer = await scene.open(hello=False)
    await peer.send("hello", 1, None, {"name": "x" * (limit + 1)})
    expect("the close code", await peer.ended(), 4501)


@case("handshake.version", "4.1")
async def another_version_ends_it(scene: Scene) -> None:
    """A `hello` of another version of the protocol closes the connection with 4503."""
    peer = await scene.open(hello=False)
    await peer.send("hello", 999, scene.target.token, {"name": "conform"})
    expect("the close code", await peer.ended(), 4503)


@case("handshake.hello-twice", "4.1", "G16")
async def a_second_hello_is_refused(scene: Scene) -> None:
    """A second `hello` is answered with `invalid`, and the connection stays."""
    peer = await scene.open()
    await peer.send("hello", 1, scene.target.token, {})
    frame = await peer.until(lambda one: one.tag == "error", "an error")
    expect("the error", (frame.plain[1], frame.plain[2]["code"]), (None, "invalid"))
    await peer.ping()


@case("handshake.early-calls", "4.1")
async def calls_may_follow_hello_at_once(scene: Scene) -> None:
    """Calls that are sent before `welcome` are answered after it."""
    peer = await scene.open(hello=False)
    await peer.send("hello", 1, scene.target.token, {"name": "conform"})
    id = await peer.begin("sessions.list")
    await peer.answer(id)
    expect("the first frame", peer.frames[0].tag, "welcome")


@case("handshake.hello-timeout", "3.9", seconds=30)
async def silence_before_hello_ends_it(scene: Scene) -> None:
    """A connection without a `hello` within `hello_seconds` is closed with 4005."""
    seconds = scene.target.welcome["limits"]["hello_seconds"]
    if seconds > 20:
        raise Skipped(f"hello_seconds is {seconds}, and the kit waits for 20 at most")
    peer = await scene.open(hello=False)
    expect("the close code", await peer.ended(seconds + 5), 4005)


@case("heartbeat.pong", "3.9")
async def each_ping_has_its_pong(scene: Scene) -> None:
    """Each `ping` is answered by one `pong` with its nonce and the server's time."""
    for codec in CODECS.values():
        peer = await scene.open(codec)
        for _ in range(3):
            require(
                (await peer.ping())["time"] > 10**12, "a pong has the time in ms", seen=peer.frames[-1].plain
            )
        expect("the pongs that came", len([one for one in peer.frames if one.tag == "pong"]), 3)


@case("heartbeat.ping", "3.5", heartbeats=3)
async def silence_is_asked_about(scene: Scene) -> None:
    """A client that says nothing for a heartbeat is asked by a `ping`."""
    peer = await scene.open()
    await peer.until(lambda one: one.tag == "ping", "a ping", seconds=peer.heartbeat * 2 + 2)


@case("heartbeat.lost", "3.5", heartbeats=4)
async def the_silent_are_taken_for_dead(scene: Scene) -> None:
    """A client from which nothing comes for two heartbeats is cut."""
    peer = await scene.open()
    peer.silent = True
    code = await peer.ended(peer.heartbeat * 3 + 3)
    require(code in {None, 4001}, "the end", expected="4001, or a cut", seen=code)


@case("heartbeat.kept", "3.5", heartbeats=4)
async def who_answers_is_kept(scene: Scene) -> None:
    """A client that answers pings and says nothing else stays connected."""
    peer = await scene.open()
    await asyncio.sleep(peer.heartbeat * 3)
    await peer.ping()


@case("heartbeat.half-open", "3.5", heartbeats=4)
async def a_connection_that_went_dark_is_given_up(scene: Scene) -> None:
    """A connection through which nothing passes any more is ended by the server."""
    proxy = await scene.proxy()
    peer = await scene.open(url=proxy.url)
    proxy.set(up=Faults(half_open=True))
    await peer.ended(peer.heartbeat * 3 + 3)
