"""Input: what becomes of prompts, repeats, the queue (SPEC 7.6, 7.10, 8.1; G1 to G3, R21, R22)."""

from __future__ import annotations

import asyncio

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case
PARTS = [{"type": "text", "text": "same"}]


@case("prompts.started", "8.1", "G2", needs=["agent"])
async def a_prompt_starts_a_turn(scene: Scene) -> None:
    """Where no turn runs, a prompt of any delivery starts one, in one change with its message and the session."""
    peer = await scene.open()
    for delivery in ("auto", "queue", "reject", "interrupt"):
        session = await scene.session(peer)
        reader = await scene.follow(peer, session)
        message = scene.new_id("m")
        answer = await peer.call(
            "prompt", session_id=session, message_id=message, parts=PARTS, delivery=delivery
        )
        expect(f"the state with {delivery}", (answer["state"], answer["message_id"]), ("started", message))
        content = next(one for one in reader.frames if one.tag == "change").plain[4]
        seen = (
            content["messages"][0]["message_id"],
            content["messages"][0]["turn_id"],
            content["turns"][0]["state"],
            content["session"]["running_turn_id"],
        )
        expect("the change", seen, (message, answer["turn_id"], "running", answer["turn_id"]))


@case("prompts.parts", "2.3")
async def user_parts_are_kept_as_they_were_sent(scene: Scene) -> None:
    """All four kinds of user parts are kept whole, with sequences, and ids where none were given."""
    peer = await scene.open()
    session = await scene.session(peer)
    parts: list[Map] = [
        {"type": "text", "text": "é😀"},
        {"type": "context", "tag": "page", "context": "<b>"},
        {"type": "file", "url": "data:,x", "media_type": "text/plain", "filename": "x.txt"},
        {"type": "data", "data_type": "chart", "data": None, "part_id": "mine"},
    ]
    await peer.call("prompt", session_id=session, message_id="m", parts=parts)
    message = (await peer.call("message", session_id=session, message_id="m"))["message"]
    seen = [
        {key: value for key, value in part.items() if key not in {"sequence", "part_id"}}
        for part in message["parts"]
    ]
    expect(
        "the parts", seen, [{key: value for key, value in part.items() if key != "part_id"} for part in parts]
    )
    expect("sequences", [part["sequence"] for part in message["parts"]], [1, 2, 3, 4])
    require(
        message["parts"][3]["part_id"] == "mine" and len({part["part_id"] for part in message["parts"]}) == 4,
        "each has an id",
        seen=message,
    )


@case("prompts.repeat", "8.1", "G3", "R21", needs=["agent"])
async def a_repeat_changes_nothing(scene: Scene) -> None:
    """A prompt sent again with the same content, twice at once and by two connections, makes one message and turn."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(peer)
    ids = [
        (one, await one.begin("prompt", session_id=session, message_id="m", parts=PARTS))
        for one in (peer, peer, other, other)
    ]
    answers = [await one.answer(id) for one, id in ids]
    expect("the answers", answers, [answers[0]] * 4)
    expect("messages", len([one for one in await scene.copy(peer, session) if one["role"] == "user"]), 1)
    before = await peer.call("sessions.get", session_id=session)
    expect(
        "a later repeat, with another delivery",
        await other.call("prompt", session_id=session, message_id="m", parts=PARTS, delivery="queue"),
        answers[0],
    )
    expect("the session", await peer.call("sessions.get", session_id=session), before)


@case("prompts.conflict", "8.1", "G3", "G16")
async def the_id_stands_for_its_content(scene: Scene) -> None:
    """The same id with other parts, unknown keys included, is `idempotency_conflict`."""
    peer = await scene.open()
    session = await scene.session(peer)
    await peer.call("prompt", session_id=session, message_id="m", parts=PARTS)
    for parts in ([{"type": "text", "text": "other"}], [{**PARTS[0], "x": 1}], PARTS * 2):
        params = {"session_id": session, "message_id": "m", "parts": parts}
        await peer.refused("idempotency_conflict", "prompt", params, field="message_id", id="m")


@case("prompts.repeat-later", "8.1", "G3", "R18", needs=["agent"])
async def inputs_are_remembered(scene: Scene) -> None:
    """After its turn and after a clear a repeat has the same answer and makes nothing; in a fork it is a new input."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    answer = await peer.call("prompt", session_id=session, message_id="m", parts=PARTS)
    held = await agent.attach(session, answer["turn_id"])
    await held.end()
    expect(
        "after the turn", await peer.call("prompt", session_id=session, message_id="m", parts=PARTS), answer
    )
    fork = (await peer.call("sessions.fork", session_id=session))["session"]["session_id"]
    await peer.call("sessions.clear", session_id=session)
    expect(
        "after a clear", await peer.call("prompt", session_id=session, message_id="m", parts=PARTS), answer
    )
    expect("messages", await scene.copy(peer, session), [])
    again = await peer.call("prompt", session_id=fork, message_id="m", parts=PARTS)
    require(
        again["state"] == "started" and again["turn_id"] != answer["turn_id"],
        "a new input in the fork",
        seen=again,
    )


@case("prompts.queue", "8.1", "G2", "R22", needs=["agent"])
async def waiting_inputs_start_turns_in_order(scene: Scene) -> None:
    """Inputs wait in order, with their places; each starts a turn in the very change that ends the one before."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    reader = await scene.follow(peer, session)
    for place in (1, 2):
        answer = await peer.call(
            "prompt", session_id=session, message_id=f"q{place}", parts=PARTS, delivery="queue"
        )
        expect("the answer", answer, {"state": "queued", "message_id": f"q{place}", "position": place})
    expect("the queue", reader.session["queue"], ["q1", "q2"])
    for name in ("q1", "q2"):
        await held.end()
        await peer.ping()
        ended = next(
            one.plain
            for one in reader.frames
            if one.tag == "change"
            and any(
                turn["turn_id"] == held.turn_id and turn["state"] == "completed"
                for turn in one.plain[4].get("turns", [])
            )
        )
        expect(
            "what the end of the turn brought along",
            [one["message_id"] for one in ended[4]["messages"] if one.get("role") == "user"],
            [name],
        )
        turn_id = reader.session["running_turn_id"]
        expect(
            "the repeat",
            (await peer.call("prompt", session_id=session, message_id=name, parts=PARTS))["turn_id"],
            turn_id,
        )
        held = await agent.attach(session, turn_id)
    await held.end()
    await peer.ping()
    require(
        "queue" not in reader.session and "running_turn_id" not in reader.session,
        "nothing waits, nothing runs",
        seen=reader.session,
    )
    await scene.same(reader, peer)


@case("prompts.queue-full", "8.1", "G16", needs=["agent"])
async def the_queue_has_an_end(scene: Scene) -> None:
    """Above `queue` waiting inputs, a prompt is `refused` (`queue_full`), and can be sent again later."""
    peer = await scene.open()
    session = await scene.session(peer)
    running = await scene.prompt(peer, session)
    count = peer.limit("queue")
    if count > 200:
        return
    for number in range(count):
        await peer.call("prompt", session_id=session, message_id=f"q{number}", parts=PARTS, delivery="queue")
    params = {"session_id": session, "message_id": "late", "parts": PARTS, "delivery": "queue"}
    await peer.refused("refused", "prompt", params, reason="queue_full")
    await peer.call("cancel_input", session_id=session, message_id="q0")
    expect("the same input later", (await peer.call("prompt", **params))["state"], "queued")
    await peer.call("stop", session_id=session, turn_id=running["turn_id"], cancel_queue="all")


@case("prompts.reject", "8.1", "G16", needs=["agent"])
async def reject_does_not_wait(scene: Scene) -> None:
    """Delivery `reject` while a turn runs is `refused` (`turn_running`), and is not remembered."""
    peer = await scene.open()
    session = await scene.session(peer)
    running = await scene.prompt(peer, session)
    params = {"session_id": session, "message_id": "m", "parts": PARTS, "delivery": "reject"}
    await peer.refused("refused", "prompt", params, reason="turn_running")
    await peer.call("stop", session_id=session, turn_id=running["turn_id"])
    other = {**params, "parts": [{"type": "text", "text": "other"}]}
    expect("the id is free", (await peer.call("prompt", **other))["state"], "started")


@case("prompts.interrupt", "8.1", needs=["agent"])
async def interrupt_goes_ahead_of_all(scene: Scene) -> None:
    """Delivery `interrupt` stops the running turn and starts its own in one change, ahead of those that wait."""
    peer = await scene.open()
    session = await scene.session(peer)
    first = await scene.prompt(peer, session)
    await peer.call("prompt", session_id=session, message_id="waits", parts=PARTS, delivery="queue")
    reader = await scene.follow(peer, session)
    answer = await peer.call(
        "prompt", session_id=session, message_id="now", parts=PARTS, delivery="interrupt"
    )
    expect("its state", answer["state"], "started")
    change = next(one.plain for one in reader.frames if one.tag == "change")
    expect(
        "the turns in that change", sorted(one["state"] for one in change[4]["turns"]), ["running", "stopped"]
    )
    expect("the first turn", reader.turns[first["turn_id"]]["state"], "stopped")
    expect("the queue", reader.session.get("queue"), ["waits"])


@case("prompts.absorbed", "8.2", "G2", "R22", needs=["agent"])
async def input_is_absorbed_at_a_step(scene: Scene) -> None:
    """An input that waits is absorbed where the agent reads its input: in one change, below what was said before."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    await held.say("before")
    answer = await peer.call("prompt", session_id=session, message_id="in", parts=PARTS)
    if answer["state"] != "queued":
        await held.end()
        return  # the host's policy does another thing with `auto`
    await peer.call("prompt", session_id=session, message_id="not", parts=PARTS, delivery="queue")
    await held.inputs(1)
    taken = await held.wrote(await held.write("absorb_inputs"))
    expect("what was absorbed", [one["message_id"] for one in taken["messages"]], ["in"])
    expect(
        "the repeat",
        await peer.call("prompt", session_id=session, message_id="in", parts=PARTS),
        {"state": "absorbed", "message_id": "in", "turn_id": held.turn_id},
    )
    await held.say("after", step="s2")
    await peer.ping()
    expect(
        "the messages",
        [(one["role"], one.get("state")) for one in reader.messages],
        [("user", None), ("agent", "done"), ("user", None), ("agent", "streaming")],
    )
    expect("the queue", reader.session.get("queue"), ["not"])
    await scene.same(reader, peer)
    await held.end()


@case("prompts.cancel", "7.10", "G2", needs=["agent"])
async def a_queued_input_can_be_taken_back(scene: Scene) -> None:
    """`cancel_input` takes a queued input back; one that started stays, and the answer says so; a repeat is harmless."""
    peer = await scene.open()
    session = await scene.session(peer)
    running = await peer.call("prompt", session_id=session, message_id="runs", parts=PARTS)
    await peer.call("prompt", session_id=session, message_id="waits", parts=PARTS, delivery="queue")
    reader = await scene.follow(peer, session)
    for _ in range(2):
        expect(
            "the answer",
            await peer.call("cancel_input", session_id=session, message_id="waits"),
            {"state": "cancelled", "message_id": "waits"},
        )
    require("queue" not in reader.session, "it left the queue", seen=reader.session)
    expect("changes", reader.tags(), ["change"])
    expect(
        "of one that started", await peer.call("cancel_input", session_id=session, message_id="runs"), running
    )
    expect(
        "a repeat of the prompt",
        (await peer.call("prompt", session_id=session, message_id="waits", parts=PARTS))["state"],
        "cancelled",
    )


@case("prompts.race-at-the-end", "8.1", "G2", "R22", needs=["agent"], seconds=30)
async def input_in_the_moment_of_the_end_is_not_lost(scene: Scene) -> None:
    """Inputs that come while turns end are each started once, and in order."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    names: list[str] = []
    for number in range(12):
        name = f"r{number}"
        names.append(name)
        id = await other.begin("prompt", session_id=session, message_id=name, parts=PARTS, delivery="queue")
        if number % 2:
            await asyncio.sleep(0)
        await asyncio.gather(held.end(), other.answer(id))
        repeat = await other.call("prompt", session_id=session, message_id=name, parts=PARTS)
        expect("the input", repeat["state"], "started")
        held = await agent.attach(session, repeat["turn_id"])
    await held.end()
    items = await scene.copy(peer, session)
    expect("the user messages", [one["message_id"] for one in items if one["role"] == "user"][1:], names)
