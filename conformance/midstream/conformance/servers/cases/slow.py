"""Slow readers (SPEC 6; G15, R13, R56)."""

from __future__ import annotations

import asyncio

from midstream.conformance.outcome import Failed, expect, require
from midstream.conformance.proxy import Faults
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case
MIB = 2**20


@case("slow.behind", "6", "G15", "R13", needs=["agent"], seconds=40)
async def a_slow_reader_is_given_a_sync(scene: Scene) -> None:
    """A reader that reads too slowly is spared frames, gets one sync for them, and then equals the server; others wait for nothing."""
    writer, proxy = await scene.open(), await scene.proxy()
    session = await scene.session(writer)
    held = await scene.turn(writer, session)
    quick = await scene.follow(writer, session)
    slow_peer = await scene.open(url=proxy.url)
    slow = await scene.follow(slow_peer, session)
    proxy.set(down=Faults(read_bytes=32_768, every=0.015))
    size = min(32 * 1024, writer.limit("agent_window_bytes") // 4)
    text = await held.text()
    for number in range(12 * MIB // size):
        if number % 40 == 39:
            await held.write("end_text", part_id=text)
            text = await held.text()
        await held.append(text, f"{number:06}" + scene.rng.choice("abc") * size)
        if number % 4 == 3:
            await held.taken()
    await held.taken()
    await writer.ping()
    require(quick.last > slow.last, "the quick reader is ahead", seen=(quick.last, slow.last))
    proxy.heal()
    await slow_peer.so(lambda: slow.last >= quick.last, "the slow reader to be brought up", seconds=20)
    require(
        "sync" in slow.tags(),
        "what waits for one reader is bounded (12 MiB are too much)",
        expected="a sync",
        seen=slow.tags()[-5:],
    )
    await held.append(text, "the end")
    await held.end()
    await slow_peer.so(lambda: "running_turn_id" not in slow.session, "the end")
    await writer.ping()
    await scene.same(slow, slow_peer)


@case("slow.never-reads", "6", "G15", needs=["agent"], heartbeats=6, seconds=40)
async def who_never_reads_is_cut(scene: Scene) -> None:
    """A connection on which no byte moves for a heartbeat, while something waits, is cut; nobody else notices."""
    writer, proxy = await scene.open(), await scene.proxy()
    session = await scene.session(writer)
    held = await scene.turn(writer, session)
    deaf = await scene.open(url=proxy.url)
    await scene.follow(deaf, session)
    proxy.set(down=Faults(half_open=True))
    text = await held.text()
    for number in range(600):
        await held.append(text, "x" * 32_768)
        if number % 4 == 3:
            await held.taken()
    for _ in range(int(writer.heartbeat * 6 / 0.05) + 40):
        if not proxy.connections or proxy.connections[0].is_over:
            break
        await deaf.send("ping", 5)  # it is alive, and does not read
        deaf.expect_pong(5)
        await asyncio.sleep(0.05)
    if proxy.connections and not proxy.connections[0].is_over:
        raise Failed(
            "who never reads is cut", expected="a cut within two heartbeats", seen="the connection stands"
        )
    await held.end()


@case("slow.paused-and-back", "6", "G15", needs=["agent"], seconds=30)
async def a_delay_changes_nothing(scene: Scene) -> None:
    """A reader on a link with a delay gets the same, later."""
    writer, proxy = await scene.open(), await scene.proxy()
    session = await scene.session(writer)
    held = await scene.turn(writer, session)
    proxy.set(up=Faults(delay=0.03), down=Faults(delay=0.03))
    peer = await scene.open(url=proxy.url)
    reader = await scene.follow(peer, session)
    await held.say(*[f"{number} " for number in range(200)])
    await held.end()
    await peer.so(lambda: "running_turn_id" not in reader.session, "the end")
    expect(
        "the text", reader.messages[-1]["parts"][0]["text"], "".join(f"{number} " for number in range(200))
    )
    await scene.same(reader, peer)
