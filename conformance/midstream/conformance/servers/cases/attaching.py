"""Attaching, generations, fencing, what is sent again (SPEC 14.3 to 14.6; G23 to G29, R31 to R45)."""

from __future__ import annotations

import asyncio

from midstream.conformance.outcome import Failed, expect, require
from midstream.conformance.servers.agent import Agent
from midstream.conformance.servers.book import CallRefused
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


async def _back(scene: Scene, agent: Agent) -> Agent:
    """Connect anew as the same process."""
    return await scene.agent(agent.name, agent.instance)


@case("attaching.answer", "7.14", needs=["agent"])
async def an_attach_tells_all(scene: Scene) -> None:
    """The first attach has generation 1, the next write 1, the turn, and the prompt that started it."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    answer = await scene.prompt(peer, session, "the prompt")
    held = await agent.attach(session, answer["turn_id"])
    result = held.result
    seen = (
        result["generation"],
        result["next_n"],
        result["durable_n"],
        result["turn"]["state"],
        result["prompt"]["parts"][0]["text"],
    )
    expect("the answer", seen, (1, 1, 0, "running", "the prompt"))
    require(result["window_bytes"] > 0 and result["lease_ms"] > 0, "window and lease are told", seen=result)
    await held.end()


@case("attaching.race", "14.3", "G23", "R31", needs=["agent"])
async def the_first_attach_wins(scene: Scene) -> None:
    """Of two workers that attach at once, one has the turn, the other is `refused` (`turn_taken`)."""
    peer = await scene.open()
    session = await scene.session(peer)
    agents = [await scene.agent(), await scene.agent()]
    answer = await scene.prompt(peer, session)
    here = {"session_id": session, "turn_id": answer["turn_id"]}
    ids = [(one.peer, await one.peer.begin("agent.attach", **here)) for one in agents]
    outcomes: list[str] = []
    for one, id in ids:
        try:
            outcomes.append(f"generation {(await one.answer(id))['generation']}")
        except CallRefused as refusal:
            outcomes.append(str(refusal.info["details"].get("reason")))
    expect("the outcomes", sorted(outcomes), ["generation 1", "turn_taken"])


@case("attaching.again", "14.3", "G23", "R32", needs=["agent"])
async def the_same_process_always_gets_in(scene: Scene) -> None:
    """The same instance attaches again, under the next generation; the older attachment is `fenced` and writes nothing more."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    text = await held.say("one ")
    back = await _back(scene, agent)
    again = await back.attach(session, held.turn_id, generation=held.result["generation"])
    expect(
        "generation and next write",
        (again.result["generation"], again.result["next_n"], again.result["durable_n"]),
        (2, held.n, held.n - 1),
    )
    expect("what the older attachment is told", await held.detached(), "fenced")
    await held.append(text, "FENCED ")
    await held.peer.ping()
    await again.append(text, "two")
    await again.end()
    items = await scene.copy(peer, session)
    expect("the text", items[-1]["parts"][0]["text"], "one two")


@case("attaching.resend", "14.5", "G25", "R33", needs=["agent"])
async def what_was_not_taken_is_sent_again(scene: Scene) -> None:
    """After a lost connection `next_n` says what was taken; numbers sent again are ignored, the rest enters once."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    text = await held.text()
    first = held.n
    for number in range(10):
        await held.append(text, f"{number} ")
    agent.peer.cut()
    back = await _back(scene, agent)
    again = await back.attach(session, held.turn_id, generation=1)
    taken = again.result["next_n"]
    require(
        first <= taken <= first + 10,
        "what was taken is a beginning",
        expected=(first, first + 10),
        seen=taken,
    )
    again.n = max(first, taken - 3)
    for number in range(again.n - first, 10):
        await again.append(text, f"{number} ")
    await again.end()
    items = await scene.copy(peer, session)
    expect("the text", items[-1]["parts"][0]["text"], "".join(f"{number} " for number in range(10)))


@case("attaching.stores", "14.3", "G24", "R43", needs=["agent"])
async def an_attach_stores_what_was_taken(scene: Scene) -> None:
    """An attach stores everything that was taken so far: a stored page has the streamed text."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    await held.say("streamed")
    back = await _back(scene, agent)
    again = await back.attach(session, held.turn_id, generation=1)
    expect("durable_n", again.result["durable_n"], again.result["next_n"] - 1)
    page = await peer.call("messages", session_id=session, stored=True)
    expect("the stored text", page["items"][-1]["parts"][0]["text"], "streamed")
    await again.end()


@case("attaching.takeover", "14.3", "G23", "R41", needs=["agent"], seconds=40)
async def a_turn_that_was_given_up_goes_to_another(scene: Scene) -> None:
    """After `agent.detach` another worker takes the turn over, and who comes back late with a generation is `fenced`."""
    peer = await scene.open()
    session = await scene.session(peer)
    first, second = await scene.agent(), await scene.agent()
    held = await scene.turn(peer, session, first)
    text = await held.say("first ")
    here = {"session_id": session, "turn_id": held.turn_id}
    await second.peer.refused("refused", "agent.attach", here, reason="turn_taken")
    expect("the detach", await first.peer.call("agent.detach", channel=held.channel), {})
    await first.peer.refused("not_found", "agent.detach", {"channel": held.channel}, kind="attachment")
    taken = await second.attach(session, held.turn_id)
    await first.peer.refused("refused", "agent.attach", {**here, "generation": 1}, reason="fenced")
    await taken.append(text, "second")
    await taken.end()
    await first.peer.refused("refused", "agent.attach", {**here, "generation": 1}, reason="turn_ended")
    items = await scene.copy(peer, session)
    expect("the text", items[-1]["parts"][0]["text"], "first second")


@case("attaching.lost-and-taken", "14.3", "G27", needs=["agent"], seconds=45)
async def another_worker_takes_a_lost_turn(scene: Scene) -> None:
    """A lost worker's turn is refused to others at first (`turn_taken`), and given to one after `takeover_seconds`."""
    peer = await scene.open()
    session = await scene.session(peer)
    first, second = await scene.agent(), await scene.agent()
    held = await scene.turn(peer, session, first)
    await held.say("from the first")
    first.peer.cut()
    for _ in range(200):
        try:
            taken = await second.attach(session, held.turn_id)
            break
        except CallRefused as refusal:
            expect("the refusal until then", refusal.info["details"].get("reason"), "turn_taken")
            await asyncio.sleep(0.1)
    else:
        return
    expect("what is there", taken.result["messages"][0]["parts"][0]["text"], "from the first")
    await taken.end()


@case("attaching.ended", "14.3", "R39", "R45", needs=["agent"])
async def an_ended_turn_cannot_be_taken(scene: Scene) -> None:
    """An attach to a turn that ended is `refused` (`turn_ended`), and so is one to a turn that never was, or it is `not_found`."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    await peer.call("stop", session_id=session, turn_id=held.turn_id)
    await agent.peer.refused(
        "refused", "agent.attach", {"session_id": session, "turn_id": held.turn_id}, reason="turn_ended"
    )
    id = await agent.peer.begin("agent.attach", session_id=session, turn_id="none")
    try:
        await agent.peer.answer(id)
    except CallRefused as refusal:
        seen = (
            refusal.info["code"],
            refusal.info["details"].get("reason", refusal.info["details"].get("kind")),
        )
        require(
            seen in {("refused", "turn_ended"), ("not_found", "turn")},
            "what means that it is over (14.3)",
            seen=seen,
        )
        return
    raise Failed("a turn that never was cannot be taken", expected="not_found", seen="a result")


@case("attaching.waiting", "14.8", "G28", "R40", needs=["agent"])
async def an_answer_reaches_who_was_away(scene: Scene) -> None:
    """An interaction that was answered while the worker was away is in the answer of its attach."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    asked = await held.ask()
    await held.stored()
    agent.peer.cut()
    response = {"kind": "approval", "decision": "approved"}
    await peer.call("respond", session_id=session, interaction_id=asked, response=response)
    await peer.call("prompt", session_id=session, message_id="in", parts=[{"type": "text", "text": "x"}])
    back = await _back(scene, agent)
    again = await back.attach(session, held.turn_id, generation=1, waiting=[asked, "none"])
    expect(
        "the interaction",
        [(one["interaction_id"], one["status"]) for one in again.result["interactions"]],
        [(asked, "resolved")],
    )
    expect("the inputs that wait", again.result.get("inputs", 0), 1)
    await again.end()


@case("attaching.results", "14.6", "G28", "R36", "R37", needs=["agent"])
async def what_was_answered_is_told_again(scene: Scene) -> None:
    """What writes gave back, and refusals, are in the answer of the next attach, the same as they were."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    hint = await held.write("add_internal", parts=[{"type": "text", "text": "hint"}])
    given = await held.wrote(hint)
    bad = await held.write("move_tool", part_id="none", state="running")
    refusal = await held.refusal(bad)
    back = await _back(scene, agent)
    again = await back.attach(session, held.turn_id, generation=1)
    expect("the results", dict(map(tuple, again.result.get("results", []))).get(hint), given)
    expect("the refusals", dict(map(tuple, again.result.get("refused", []))).get(bad), refusal)
    await again.end()


@case("attaching.gap", "14.4", "G25", needs=["agent"])
async def a_number_that_is_left_out_ends_the_attachment(scene: Scene) -> None:
    """A write above the next number ends the attachment (`gap`); one that was taken before is ignored."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    text = await held.say("a")
    held.n = 1
    await held.write("end_turn", state="completed")
    await held.peer.ping()
    expect(
        "a number that was used", (await peer.call("turn", session_id=session))["turn"]["state"], "running"
    )
    held.n = held.result["next_n"] + 50
    await held.append(text, "lost")
    expect("a number that is too high", await held.detached(), "gap")
    again = await agent.attach(session, held.turn_id, generation=1)
    await again.end()
    items = await scene.copy(peer, session)
    expect("the text", items[-1]["parts"][0]["text"], "a")
