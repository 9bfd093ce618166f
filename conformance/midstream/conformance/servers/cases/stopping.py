"""Stop (SPEC 7.7, 8.5; G9, G18, R24)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("stopping.stop", "8.5", needs=["agent"])
async def a_stop_ends_the_turn(scene: Scene) -> None:
    """`stop` ends the running turn as `stopped`, before its answer; a repeat with the turn's id is `idle`."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)
    reader = await scene.follow(peer, session)
    stopped = await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    expect(
        "the answer",
        stopped,
        {"stopped": True, "turn_id": answer["turn_id"], "cancelled": [], "reason": "stopped"},
    )
    expect("the turn", reader.turns[answer["turn_id"]]["state"], "stopped")
    require("running_turn_id" not in reader.session, "no turn runs", seen=reader.session)
    again = await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    expect("a repeat", again, {"stopped": False, "cancelled": [], "reason": "idle"})


@case("stopping.idle", "7.7", "G18")
async def a_stop_where_nothing_runs_does_nothing(scene: Scene) -> None:
    """`stop` where no turn runs is `idle`, and publishes nothing."""
    peer = await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session)
    expect("the answer", (await peer.call("stop", session_id=session))["reason"], "idle")
    expect("what was published", reader.tags(), [])


@case("stopping.ended-turn", "8.5", "G18", "R24", needs=["agent"])
async def a_stop_of_an_ended_turn_spares_the_next(scene: Scene) -> None:
    """A stop that names an ended turn does nothing, while the next one runs."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    first = await scene.turn(peer, session, agent)
    await first.end()
    second = await scene.turn(peer, session, agent)
    waits = await scene.prompt(peer, session, delivery="queue")
    reader = await scene.follow(peer, session)
    answer = await peer.call("stop", session_id=session, turn_id=first.turn_id, cancel_queue="all")
    expect("the answer", answer, {"stopped": False, "cancelled": [], "reason": "idle"})
    expect("what was published", reader.tags(), [])
    expect("the queue", reader.session["queue"], [waits["message_id"]])
    await second.say("goes on")


@case("stopping.queue", "8.5", needs=["agent"])
async def a_stop_cancels_the_inputs_it_names(scene: Scene) -> None:
    """`cancel_queue` cancels the caller's inputs, all, or none; what waits then starts in the same change."""
    peer = await scene.open()
    for wish, cancelled in (("none", False), ("own", True), ("all", True)):
        session = await scene.session(peer)
        running = await scene.prompt(peer, session)
        waits = (await scene.prompt(peer, session, delivery="queue"))["message_id"]
        reader = await scene.follow(peer, session)
        answer = await peer.call("stop", session_id=session, turn_id=running["turn_id"], cancel_queue=wish)
        expect(f"what {wish} cancels", answer["cancelled"], [waits] if cancelled else [])
        expect("the changes", reader.tags()[:1], ["change"])
        first = next(one.plain[4] for one in reader.frames if one.tag == "change")
        expect("whether the next turn runs", "running_turn_id" in first["session"], not cancelled)


@case("stopping.late-writes", "8.5", "G9", "G26", "R38", needs=["agent"])
async def what_comes_after_a_stop_does_not_enter(scene: Scene) -> None:
    """What the agent writes after a stop does not enter; the worker is told, and the text stays as far as it came."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    text = await held.say("so far")
    reader = await scene.follow(peer, session)
    await peer.call("stop", session_id=session, turn_id=held.turn_id)
    for _ in range(5):
        await held.append(text, " too late")
    await held.text("a new part, too late")
    expect("what the worker is told", await held.detached(), "ended")
    await held.peer.ping()
    await peer.ping()
    expect("the text", [part["text"] for part in reader.messages[-1]["parts"]], ["so far"])
    expect("changes", reader.tags(), ["change"])
    await scene.same(reader, peer)


@case("stopping.two-stops", "8.5", needs=["agent"])
async def of_two_stops_one_stops(scene: Scene) -> None:
    """Of two stops of one turn at once, one ends it, the other is `idle`."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    ids = [(one, await one.begin("stop", session_id=session, turn_id=held.turn_id)) for one in (peer, other)]
    answers = [await one.answer(id) for one, id in ids]
    expect("the answers", sorted(one["reason"] for one in answers), ["idle", "stopped"])
