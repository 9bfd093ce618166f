"""Where the server runs its own agent: what can be said whatever that agent says (SPEC 7.14, 8)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("own-agent.not-remote", "7.14", "G16", needs=["own"])
async def workers_are_refused(scene: Scene) -> None:
    """A server that runs its own agent refuses workers (`not_remote`)."""
    peer = await scene.open()
    await peer.refused("refused", "agent.register", {"name": "w", "instance": "1"}, reason="not_remote")


@case("own-agent.turn", "8.4", "G6", "G7", "G9", needs=["own"], seconds=90)
async def its_turn_is_followed_to_the_end(scene: Scene) -> None:
    """A turn of the server's own agent is followed version by version, ends, and leaves equal replicas."""
    peer = await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session)
    answer = await scene.prompt(peer, session, "Say hello")
    await peer.so(
        lambda: reader.turns.get(answer["turn_id"], {}).get("state", "running") != "running",
        "the end of the turn",
        60,
    )
    require(
        any(one["role"] == "agent" for one in reader.messages), "the agent has answered", seen=reader.messages
    )
    await scene.same(reader, peer)


@case("own-agent.stop", "8.5", "G9", needs=["own"])
async def its_turn_can_be_stopped(scene: Scene) -> None:
    """A stop ends the turn of the server's own agent, and nothing of it comes afterwards."""
    peer = await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session)
    answer = await scene.prompt(peer, session, "Count to a thousand")
    stopped = await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    since = len(reader.frames)
    await peer.ping()
    if stopped["stopped"]:
        expect("what comes after the stop", reader.tags(since), [])
    await scene.same(reader, peer)
