"""What workers may write, and what is refused to them (SPEC 8.9, 14.4 to 14.7; G11, G24, G29, R48)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case("writes.refused", "14.7", "G16", "R48", needs=["agent"])
async def a_write_that_may_not_be_is_refused_by_its_number(scene: Scene) -> None:
    """Writes that may not be are `refused` by number, change nothing, and the ones behind them are taken."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    text = await held.say("x")
    done = await held.tool("ready")
    await held.write("move_tool", part_id=done, state="completed", output=1)
    await held.taken()
    reader = await scene.follow(peer, session)
    part = {"type": "text", "part_id": "new", "step_id": "s1", "text": "", "state": "streaming"}
    await held.refused("invalid", "add_part", part={**part, "part_id": text})
    await held.refused(
        "invalid", "add_part", part={key: value for key, value in part.items() if key != "part_id"}
    )
    await held.refused("invalid", "add_part", part={**part, "sequence": 9})
    await held.refused(
        "invalid",
        "add_part",
        part={
            "type": "tool",
            "part_id": "t",
            "step_id": "s1",
            "tool_call_id": "c",
            "tool_name": "n",
            "state": "running",
        },
    )
    await held.refused("illegal_transition", "move_tool", part_id=done, state="running")
    await held.refused("illegal_transition", "move_tool", part_id="none", state="running")
    await held.refused("invalid", "end_text", part_id=done)
    await held.refused("invalid", "end_turn", state="failed")
    await held.refused("invalid", "end_turn", state="completed", failure={"code": "c", "message": "m"})
    await held.refused(
        "invalid", "ask", interaction_id="i", interaction_type="question", request={"title": "t"}
    )
    await held.refused("invalid", "add_internal", parts=[])
    await held.refused("invalid", "shout")
    await peer.ping()
    expect("what was published", reader.tags(), [])
    await held.append(text, "y")
    await held.end()
    await peer.ping()
    expect("the text", reader.messages[-1]["parts"][0]["text"], "xy")
    await scene.same(reader, peer)


@case("writes.claim", "8.9", "G11", "G29", needs=["agent"])
async def a_tool_is_claimed_once(scene: Scene) -> None:
    """A tool is claimed once: the claim is on disk when it is acknowledged, and a second one is refused."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    tool = await held.tool("ready")
    await held.write("move_tool", part_id=tool, state="running")
    await held.taken()
    page = await peer.call("messages", session_id=session, stored=True)
    expect("the stored tool", page["items"][-1]["parts"][0]["state"], "running")
    await held.refused("illegal_transition", "move_tool", part_id=tool, state="running")
    await held.write("move_tool", part_id=tool, state="running", output=1, preliminary=True)
    await held.write("move_tool", part_id=tool, state="failed", error="no")
    await held.end()


@case("writes.ack", "14.5", "G24", needs=["agent"])
async def a_stored_write_is_durable_when_acknowledged(scene: Scene) -> None:
    """The `ack` of a stored write says that it is durable; acks never go back, and `durable` is never above `n`."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    for number in range(5):
        tool = await held.tool("ready", step=f"s{number}")
        require(
            await held.taken() >= held.n - 1,
            "the ack of a stored write covers it as durable",
            expected=held.n - 1,
            seen=held.seen("ack")[-1],
        )
        await held.write("move_tool", part_id=tool, state="completed", output=number)
        text = await held.text("live", step=f"s{number}")
        await held.append(text, "more")
        await held.taken()
    await held.end()
    acks = [(one[2], one[3]) for one in held.seen("ack")]
    expect("acks only grow", acks, sorted(acks))
    require(all(durable <= n for n, durable in acks), "durable is at or below n", seen=acks)


@case("writes.phases", "2.5", needs=["agent"])
async def the_phase_says_what_the_turn_does(scene: Scene) -> None:
    """The turn's phase follows from what is written: waiting-model, streaming, running-tool, waiting-user."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    seen: list[str] = []

    async def note() -> None:
        await held.taken()
        seen.append((await peer.call("turn", session_id=session))["turn"]["phase"])

    seen.append((await peer.call("turn", session_id=session))["turn"]["phase"])
    await held.write("begin_step")
    await note()
    await held.say("x")
    await note()
    tool = await held.tool("ready")
    await held.write("move_tool", part_id=tool, state="running")
    await note()
    await held.write("move_tool", part_id=tool, state="completed", output=1)
    await note()
    await held.ask()
    await note()
    await held.end()
    expect(
        "the phases",
        seen,
        ["starting", "waiting-model", "streaming", "running-tool", "waiting-model", "waiting-user"],
    )


@case("writes.errors", "14.7", needs=["agent"])
async def an_error_is_kept_in_the_conversation(scene: Scene) -> None:
    """`report_error` adds an error part, as a message of its own where none streams; the turn goes on."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.write("report_error", code="first", message="m")
    await held.say("x")
    await held.write("report_error", code="second", message="m", recoverable=False, scope="session")
    await held.end()
    items = await scene.copy(peer, session)
    found = [
        (part["code"], part["recoverable"], part["scope"])
        for one in items
        for part in one["parts"]
        if part["type"] == "error"
    ]
    expect("the error parts", found, [("first", True, "turn"), ("second", False, "session")])
    expect("the messages", [one.get("state") for one in items], [None, "done", "done"])


@case("writes.window", "14.5", "G30", "R49", needs=["agent"], seconds=30)
async def who_keeps_to_the_window_loses_nothing(scene: Scene) -> None:
    """A worker that writes as fast as its window allows loses nothing."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    text = await held.text()
    piece = "w" * (held.result["window_bytes"] // 8)
    for number in range(24):
        if number >= 6:
            await held.taken(held.n - 6)
        await held.append(text, piece)
    await held.end()
    await peer.so(lambda: "running_turn_id" not in reader.session, "the end")
    expect("the length of the text", len(reader.messages[-1]["parts"][0]["text"]), len(piece) * 24)
    await scene.same(reader, peer)
