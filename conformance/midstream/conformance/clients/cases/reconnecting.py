"""When a client comes back, when it does not, and how it notices that it must (SPEC 3.5, 4.7, 11.3)."""

import asyncio
import time

from midstream.conformance.clients.cases.talks import streaming
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import Failed, expect, require
from midstream.protocol.frames import GoAway, Ping, Pong

BASE_S, LIMIT_S, STABLE_S = 0.5, 30.0, 10.0
"""The times of SPEC 4.7."""
ATTEMPTS = 8
SLACK_S = 3.0
"""What a busy machine may add to a pause."""


async def comes_back(scene: Scene, code: int) -> None:
    """Close with a code; the client comes back with its cursor."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.close(code, "for the test")
    again = await scene.peer()
    await scene.again(again, talk, cursor=talk.version)
    await scene.goes_on(again, talk)
    await scene.tell("close")


async def stays_away(scene: Scene, code: int) -> None:
    """Close with a code; the client says that it is over, and does not come back."""
    talk = streaming()
    peer = await scene.open(talk)
    count = len(scene.server.peers)
    await peer.close(code, "for the test")
    await scene.until(talk, lambda shown: shown.link == "closed", f"that {code} ended it: link `closed`")
    # its first pause would have been over by now
    await asyncio.sleep(BASE_S * scene.scale * 1.5 + 0.1)
    expect(f"connections after {code}", len(scene.server.peers) - count, 0)
    await scene.tell("close")


@SUITE.case("reconnecting.codes", "11.3", seconds=60)
async def codes(scene: Scene) -> None:
    """After a code that says so, and any that is not known, the client comes back with its cursor."""
    for code in (4000, 4001, 4002, 4003, 4004, 4005, 4006, 4444, 1000, 1001, 1011, 3999):
        await comes_back(scene, code)


@SUITE.case("reconnecting.final_codes", "11.3", seconds=60)
async def final_codes(scene: Scene) -> None:
    """After a code from 4500 to 4999, known or not, the client does not come back by itself."""
    for code in (4500, 4501, 4503, 4504, 4506, 4999):
        await stays_away(scene, code)


@SUITE.case("reconnecting.unanswered_hello", "4.1")
async def unanswered_hello(scene: Scene) -> None:
    """A connection that ends before its welcome is tried again."""
    scene.server.welcomes = False
    talk = streaming()
    await scene.connect()
    await scene.hold(talk)
    peer = await scene.peer()
    peer.drop()
    peer = await scene.peer()
    await peer.close(4003)
    scene.server.welcomes = True
    peer = await scene.peer()
    await scene.sync(peer, talk)
    await scene.goes_on(peer, talk)


async def attempts(scene: Scene) -> list[float]:
    """Close each connection before its welcome; return the pauses before the attempts."""
    first = len(scene.server.opened_at)
    await scene.connect()
    closed: list[float] = []
    for _ in range(ATTEMPTS + 1):
        peer = await scene.peer()
        await peer.close(4004)
        await peer.ended(within=scene.patience)
        closed.append(asyncio.get_running_loop().time())
    await scene.tell("close")
    opened = scene.server.opened_at[first:]
    return [opened[number + 1] - closed[number] for number in range(ATTEMPTS)]


@SUITE.case("reconnecting.backoff", "4.7", seconds=200)
async def backoff(scene: Scene) -> None:
    """The pauses between attempts are random, up to a bound that doubles up to 30 s."""
    scene.server.welcomes = False
    base = BASE_S * scene.scale
    pauses: list[float] = []
    for _ in range(3):  # by chance alone, pauses are as short as this once in some thousands
        pauses = await attempts(scene)
        for number, pause in enumerate(pauses):
            bound = min(LIMIT_S * scene.scale, base * 2**number)
            require(pause <= bound + SLACK_S, "a pause within its bound", expected=bound, seen=pause)
        if sum(pauses) > base * (ATTEMPTS + 1) * 1.5:
            return
    raise Failed("the pauses between attempts do not grow", expected=f"more than {base} s each", seen=pauses)


@SUITE.case("reconnecting.goaway", "3.9", "R55")
async def goaway(scene: Scene) -> None:
    """After a goaway the client stays away for the time that it names, and then comes back."""
    talk = streaming()
    peer = await scene.open(talk)
    began = time.monotonic()
    await peer.send(GoAway("the server stops", 400))
    await scene.heard(peer)
    await peer.close(4000)
    again = await scene.peer()
    waited = time.monotonic() - began
    require(waited > 0.35, "to stay away for 0.4 s", expected=0.4, seen=waited)
    await scene.again(again, talk, cursor=talk.version)
    await scene.goes_on(again, talk)


@SUITE.case("reconnecting.leaves_after_goaway", "3.9")
async def leaves_after_goaway(scene: Scene) -> None:
    """A client that was told to go ends the connection itself, also where the server does not."""
    talk = streaming()
    peer = await scene.open(talk)
    await peer.send(GoAway("the server stops", 200))
    await peer.ended(within=scene.patience)
    again = await scene.peer()
    await scene.again(again, talk, cursor=talk.version)


@SUITE.case("reconnecting.pings", "3.5")
async def pings(scene: Scene) -> None:
    """Each ping is answered by a pong with its nonce, in order, and nothing else is."""
    talk = streaming()
    peer = await scene.open(talk)
    nonces = [7, 7, 0, 2**53 - 1, 12]
    for nonce in nonces:
        await peer.send(Ping(nonce))
    await scene.goes_on(peer, talk)
    await scene.heard(peer)
    seen = [frame.nonce for frame in peer.frames if isinstance(frame, Pong)]
    expect("the nonces of the pongs", seen[: len(nonces)], nonces)


@SUITE.case("reconnecting.silence", "3.5", seconds=60)
async def silence(scene: Scene) -> None:
    """When nothing comes for a heartbeat the client pings; after two it connects anew."""
    scene.server.heartbeat_ms = 500
    talk = streaming()
    peer = await scene.open(talk)
    peer.answers_pings = False

    def pinged() -> bool | None:
        return any(isinstance(frame, Ping) for frame in peer.frames) or None

    await peer.until(pinged, "send a ping in silence", within=scene.patience)
    await peer.ended(within=scene.patience)
    scene.server.heartbeat_ms = 60_000
    again = await scene.peer()
    await scene.again(again, talk, cursor=talk.version)
    await scene.goes_on(again, talk)


@SUITE.case("reconnecting.speaks", "3.5", seconds=60)
async def speaks(scene: Scene) -> None:
    """A client that receives all the time says something itself each heartbeat."""
    scene.server.heartbeat_ms = 400
    talk = streaming()
    peer = await scene.open(talk)

    async def never_silent() -> None:
        while True:
            await peer.send(talk.short("on "))
            await asyncio.sleep(0.02)

    def pinged() -> bool | None:
        return sum(isinstance(frame, Ping) for frame in peer.frames) >= 3 or None

    sending = asyncio.create_task(never_silent())
    try:
        await peer.until(pinged, "send a ping each heartbeat while it receives", within=scene.patience)
    finally:
        sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await scene.goes_on(peer, talk)


@SUITE.case("reconnecting.lives", "3.5", seconds=60)
async def lives(scene: Scene) -> None:
    """A connection whose pings are answered is kept, however quiet it is."""
    scene.server.heartbeat_ms = 500
    talk = streaming()
    peer = await scene.open(talk)

    def pinged() -> bool | None:
        return sum(isinstance(frame, Ping) for frame in peer.frames) >= 4 or None

    await peer.until(pinged, "send four pings in silence", within=scene.patience)
    await scene.goes_on(peer, talk)
