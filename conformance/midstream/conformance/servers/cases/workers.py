"""Workers: registering, offers, leases (SPEC 14.2, 14.3, 14.9; G27, R46)."""

from __future__ import annotations

from midstream.conformance.outcome import Skipped, expect, require
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("workers.register", "14.2", needs=["agent"])
async def a_connection_registers_once(scene: Scene) -> None:
    """`agent.register` tells the lease; a second one on the connection is `refused` (`registered`)."""
    agent = await scene.agent()
    require(agent.lease > 0, "a lease is told", seen=agent.lease)
    params = {"name": agent.name, "instance": agent.instance}
    await agent.peer.refused("refused", "agent.register", params, reason="registered")


@case("workers.not-registered", "14.3", "G16", needs=["agent"])
async def who_did_not_register_takes_nothing(scene: Scene) -> None:
    """Calls of workers on a connection that did not register are `refused` (`not_registered`); a write is `invalid`."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)
    here = {"session_id": session, "turn_id": answer["turn_id"]}
    for method, params in (
        ("agent.attach", here),
        ("agent.decline", here),
        ("agent.detach", {"channel": 1}),
        ("agent.unregister", {}),
    ):
        await peer.refused("refused", method, params, reason="not_registered")
    await peer.send("write", 1, 1, {"op": "begin_step"})
    frame = await peer.until(lambda one: one.tag == "error" and one.plain[1] is None, "an error")
    expect("the code", frame.plain[2]["code"], "invalid")


@case("workers.offer", "14.3", needs=["agent"], seconds=40)
async def a_turn_is_offered(scene: Scene) -> None:
    """A turn that waits is offered to a worker that has room; one that registers later is offered what waits."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)
    agent = await scene.agent(concurrency=10_000)
    wanted = ["offer", session, answer["turn_id"], False]
    await agent.peer.until(lambda one: one.plain == wanted, "the offer of what waited")
    held = await agent.attach(session, answer["turn_id"])
    await held.end()


@case("workers.decline", "14.3", needs=["agent"], seconds=40)
async def a_declined_turn_is_offered_to_others(scene: Scene) -> None:
    """A turn that one worker declines is offered to another one."""
    peer = await scene.open()
    first, second = await scene.agent(concurrency=10_000), await scene.agent(concurrency=9_999)
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)

    def is_offer(one: object) -> bool:
        return getattr(one, "plain", [])[:3] == ["offer", session, answer["turn_id"]]

    await peer.ping()
    await first.peer.until(is_offer, "an offer", seconds=12)
    expect(
        "the answer",
        await first.peer.call("agent.decline", session_id=session, turn_id=answer["turn_id"]),
        {},
    )
    await second.peer.until(is_offer, "an offer after the decline", seconds=12)


@case("workers.unregister", "14.2", needs=["agent"])
async def unregistering_keeps_what_is_attached(scene: Scene) -> None:
    """`agent.unregister` ends the offers; what is attached goes on."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    expect("the answer", await agent.peer.call("agent.unregister"), {})
    await held.say("goes on")
    await held.end()


@case("workers.replaced", "14.2", "R46", needs=["agent"])
async def a_name_belongs_to_the_newest_process(scene: Scene) -> None:
    """Another process that registers a name closes the older connection with 4506, and may take its turns at once."""
    peer = await scene.open()
    session = await scene.session(peer)
    older = await scene.agent()
    held = await scene.turn(peer, session, older)
    await held.say("from the first")
    newer = await scene.agent(older.name)
    expect("the older connection's close code", await older.peer.ended(), 4506)
    taken = await newer.attach(session, held.turn_id)
    expect("the generation", taken.result["generation"], held.result["generation"] + 1)
    expect("what is there", taken.result["messages"][0]["parts"][0]["text"], "from the first")
    await taken.end()


@case("workers.lease", "14.9", "G27", needs=["agent"], seconds=45)
async def a_lost_worker_fails_its_turn_after_the_lease(scene: Scene) -> None:
    """A turn whose worker is lost goes on to run until the lease is over, then fails as `agent_lost`, and its text stays."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    if agent.lease > 35:
        raise Skipped(f"the lease is {agent.lease:g} s, and the kit waits for 35 at most")
    held = await scene.turn(peer, session, agent)
    reader = await scene.follow(peer, session)
    await held.say("so far")
    await held.tool("ready")
    await held.taken()
    agent.peer.cut()
    await peer.ping()
    expect("the turn while the lease runs", reader.session.get("running_turn_id"), held.turn_id)
    await peer.so(
        lambda: reader.turns[held.turn_id]["state"] != "running", "the end of the lease", agent.lease + 5
    )
    turn = reader.turns[held.turn_id]
    expect("the turn", (turn["state"], turn["error"]["code"]), ("failed", "agent_lost"))
    parts = reader.messages[-1]["parts"]
    expect(
        "the parts",
        [(part.get("text"), part.get("error")) for part in parts[:2]],
        [("so far", None), (None, "runtime_interrupted")],
    )
    await scene.same(reader, peer)


@case("workers.nobody", "14.9", needs=["agent"], seconds=60)
async def a_turn_that_nobody_takes_fails(scene: Scene) -> None:
    """A turn that no worker takes in time fails with `no_agent`, and the next input starts the next turn."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)
    reader = await scene.follow(peer, session)
    await peer.so(lambda: reader.turns[answer["turn_id"]]["state"] != "running", "the end of the turn", 45)
    turn = reader.turns[answer["turn_id"]]
    expect("the turn", (turn["state"], turn["error"]["code"]), ("failed", "no_agent"))
