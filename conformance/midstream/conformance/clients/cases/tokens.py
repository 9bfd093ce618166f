"""Tokens: given in the hello, renewed in band, and asked for again (SPEC 4.7, 7.16, 10.6)."""

import asyncio

from midstream.conformance.clients.cases.talks import streaming
from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.scene import Scene
from midstream.conformance.clients.scripted import Peer
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import expect
from midstream.protocol.calls import AuthResult

TOKENS = ["tokens"]
SHORT_MS, LONG_MS = 1_000, 3_600_000


async def says(scene: Scene, token: str) -> Peer:
    """Wait for the next connection, whose hello has this token."""
    peer = await scene.peer()
    expect("the token of the hello", None if peer.hello is None else peer.hello.token, token)
    return peer


async def opened(scene: Scene, *tokens: str) -> tuple[Peer, Conversation]:
    """Let a client with these tokens open a session."""
    talk = streaming()
    await scene.connect(tokens=tokens)
    await scene.hold(talk)
    peer = await says(scene, tokens[0])
    await scene.sync(peer, talk)
    await scene.reached(talk)
    return peer, talk


@SUITE.case("tokens.renewed", "4.7", needs=TOKENS)
async def renewed(scene: Scene) -> None:
    """Before the token ends the client gives the next one by `auth`, and the connection goes on."""
    scene.server.token_ms = SHORT_MS
    peer, talk = await opened(scene, "one", "two")
    call = await scene.call(peer, "auth")
    expect("the token of auth", call.value("token"), "two")
    await peer.answer(call, AuthResult(subject="local", scopes=["read"], token_ms=LONG_MS))
    await scene.goes_on(peer, talk)
    expect("calls of auth that were not called for", peer.waiting("auth"), 0)


@SUITE.case("tokens.not_renewed", "4.7", needs=TOKENS)
async def not_renewed(scene: Scene) -> None:
    """An `auth` that is refused changes nothing: the connection goes on."""
    scene.server.token_ms = SHORT_MS
    peer, talk = await opened(scene, "one", "two", "three")
    call = await scene.call(peer, "auth")
    await peer.refuse(call, "forbidden", field="token")
    await scene.goes_on(peer, talk)


@SUITE.case("tokens.expired", "11.3", needs=TOKENS)
async def expired(scene: Scene) -> None:
    """After 4505 the client comes back with its cursor and the next token, however often that happens."""
    peer, talk = await opened(scene, "one", "two", "three")
    scene.server.welcomes = False
    await peer.close(4505)
    peer = await says(scene, "two")
    scene.server.welcomes = True
    await peer.close(4505)
    peer = await says(scene, "three")
    await scene.again(peer, talk, cursor=talk.version)
    await scene.goes_on(peer, talk)


@SUITE.case("tokens.unauthorized", "11.3", needs=TOKENS)
async def unauthorized(scene: Scene) -> None:
    """After 4504 the client comes back once with another token; after a second one in a row it stops."""
    scene.server.welcomes = False
    talk = streaming()
    await scene.connect(tokens=["one", "two", "three"])
    await scene.hold(talk)
    for token in ("one", "two"):
        peer = await says(scene, token)
        await peer.close(4504)
    await scene.until(talk, lambda shown: shown.link == "closed", "that it stopped")
    await asyncio.sleep(scene.scale * 2 + 0.1)  # what would come would have come
    expect("connections", len(scene.server.peers), 2)
