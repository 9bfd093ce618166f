"""What readers see of a turn: text, tools, steps and ends (SPEC 2.6, 3.4, 8.2 to 8.4; G9, G12, G13)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.codec import CODECS

case = SUITE.case


@case("streaming.text", "8.2", "G6", needs=["agent"])
async def text_comes_as_it_was_appended(scene: Scene) -> None:
    """What the agent appends comes to every reader, whole and in order, whatever the language and the encoding."""
    words = ["Grüße, ", "世界 ", "😀🏳️‍🌈 ", '"quotes" \\ ', "\n\t\0 ", "end"]
    for codec in CODECS.values():
        peer = await scene.open(codec)
        session = await scene.session(peer)
        held = await scene.turn(peer, session)
        reader = await scene.follow(peer, session)
        await held.say(*words)
        await held.end()
        await peer.so(lambda reader=reader: "running_turn_id" not in reader.session, "the end")  # type: ignore[misc]  # bound at once
        (part,) = reader.messages[-1]["parts"]
        expect("the text", (part["text"], part["state"]), ("".join(words), "done"))
        await scene.same(reader, peer)


@case("streaming.alternating", "3.9", "R1", "R58", needs=["agent"])
async def deltas_of_several_parts_keep_apart(scene: Scene) -> None:
    """Text of two parts and of a tool's arguments, which alternate, comes to each in its own order."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    parts = [await held.text(), await held.text(kind="reasoning"), await held.tool("input-streaming")]
    for number in range(60):
        await held.append(parts[number % 3], f"{number},")
        if number == 30:
            parts.append(await held.text())
            await held.append(parts[-1], "fourth")
    await held.taken()
    await peer.ping()
    seen = [part.get("text", part.get("input_text")) for part in reader.messages[-1]["parts"]]
    expect("the texts", seen, ["".join(f"{n}," for n in range(k, 60, 3)) for k in range(3)] + ["fourth"])
    await scene.same(reader, peer)
    await held.end()


@case("streaming.durable", "3.9", "G12", "R7", needs=["agent"])
async def messages_are_created_durable(scene: Scene) -> None:
    """The change that creates a message is durable, and so are moves of tools and the end of the turn."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    await held.say("text")
    tool = await held.tool("ready")
    await held.write("move_tool", part_id=tool, state="running")
    await held.write("move_tool", part_id=tool, state="completed", output=1)
    await held.end()
    await peer.so(lambda: "running_turn_id" not in reader.session, "the end")
    for frame in reader.frames:
        if frame.tag != "change":
            continue
        content = frame.plain[4]
        new = [entry for entry in content.get("messages", []) if "role" in entry]
        tools = [
            part
            for entry in content.get("messages", [])
            for part in entry.get("parts", [])
            if part["type"] == "tool" and part["state"] != "input-streaming"
        ]
        ended = [turn for turn in content.get("turns", []) if turn["state"] != "running"]
        if new or tools or ended or "session" in content:
            require(frame.plain[3], "this change is durable (8.3, 2.4)", expected=True, seen=frame.plain)


@case("streaming.stored-page", "7.3", "G12", needs=["agent"])
async def what_is_durable_is_in_the_stored_page(scene: Scene) -> None:
    """A change marked durable was committed before it was sent: a stored page has it at once."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    await held.say("some text ")
    tool = await held.tool("ready")
    await held.taken()
    page = await peer.call("messages", session_id=session, stored=True)
    require(
        page["version"] >= reader.replica.durable,
        "the stored page is at the last commit",
        expected=reader.replica.durable,
        seen=page["version"],
    )
    expect(
        "the stored tool",
        [part["part_id"] for part in page["items"][-1]["parts"] if part["type"] == "tool"],
        [tool],
    )
    expect(
        "the stored text (8.3: a commit stores the whole message)",
        page["items"][-1]["parts"][0]["text"],
        "some text ",
    )
    await held.end()


@case("streaming.tool", "2.6", "G11", needs=["agent"])
async def a_tool_is_one_part_from_call_to_outcome(scene: Scene) -> None:
    """A tool is one part that moves by the table, and keeps what it was given."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    tool = await held.tool("input-streaming")
    await held.append(tool, '{"x": 1}')
    await held.write("move_tool", part_id=tool, state="ready", input={"x": 1})
    await held.write("move_tool", part_id=tool, state="running")
    await held.write("move_tool", part_id=tool, state="running", output="half", preliminary=True)
    await held.write("move_tool", part_id=tool, state="completed", output={"found": []})
    await held.stored()
    await peer.ping()
    (part,) = reader.messages[-1]["parts"]
    seen = {key: part.get(key) for key in ("state", "input", "input_text", "output", "preliminary")}
    wanted: Map = {
        "state": "completed",
        "input": {"x": 1},
        "input_text": '{"x": 1}',
        "output": {"found": []},
        "preliminary": None,
    }
    expect("the tool", seen, wanted)
    await scene.same(reader, peer)
    await held.end()


@case("streaming.end", "8.4", "G9", needs=["agent"])
async def the_end_of_a_turn_closes_what_is_open(scene: Scene) -> None:
    """At the end of a turn, however it ends, open texts are `done` and open tools `failed` with the word for it."""
    peer = await scene.open()
    for state, word in (
        ("completed", "turn_completed"),
        ("failed", "turn_failed"),
        ("stopped", "turn_stopped"),
    ):
        session = await scene.session(peer)
        held = await scene.turn(peer, session)
        reader = await scene.follow(peer, session)
        await held.say("half a sen")
        await held.tool("ready")
        action = {
            "type": "action",
            "part_id": "act",
            "action_id": "a",
            "action_type": "x",
            "state": "running",
            "title": "t",
        }
        await held.write("add_part", part=action)
        await held.taken()
        if state == "stopped":
            expect(
                "the stop",
                (await peer.call("stop", session_id=session, turn_id=held.turn_id))["stopped"],
                True,
            )
        elif state == "failed":
            await held.end("failed", failure={"code": "overslept", "message": "It failed."})
        else:
            await held.end()
        await peer.so(lambda reader=reader: "running_turn_id" not in reader.session, "the end")  # type: ignore[misc]  # bound at once
        parts = reader.messages[1]["parts"]
        expect(
            "the parts",
            [(part.get("state"), part.get("error")) for part in parts[:3]],
            [("done", None), ("failed", word), ("failed", None)],
        )
        turn = reader.turns[held.turn_id]
        expect(
            "the turn",
            (turn["state"], "finished_at" in turn, "error" in turn),
            (state, True, state == "failed"),
        )
        if state == "failed":
            expect("the error part", (parts[-1]["type"], parts[-1]["code"]), ("error", "overslept"))
        await scene.same(reader, peer)


@case("streaming.step-undone", "8.3", needs=["agent"])
async def a_step_that_was_claimed_is_not_undone(scene: Scene) -> None:
    """A step whose tool has left `input-streaming` is closed, not undone."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.say("text")
    await held.tool("ready")
    undone = await held.wrote(await held.write("abandon_step", step_id="s1"))
    expect("undone", undone.get("undone", False), False)
    page = await peer.call("messages", session_id=session)
    states = [(part["state"], part.get("error")) for part in page["items"][-1]["parts"]]
    expect("the parts", states, [("done", None), ("failed", "step_abandoned")])
    await held.end()


@case("streaming.internal", "8.7", "G20", "R15", needs=["agent"])
async def internal_messages_are_for_who_asks(scene: Scene) -> None:
    """An internal message is shown to those who asked for them; to others it is a skip, and in no page or digest."""
    peer, inner = await scene.open(), await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    insider = await scene.follow(inner, session, include_internal=True)
    written = await held.wrote(await held.write("add_internal", parts=[{"type": "text", "text": "hint"}]))
    hidden = written["messages"][0]["sequence"]
    await held.say("answer")
    await held.end()
    await peer.so(lambda: "running_turn_id" not in reader.session, "the end")
    await inner.so(lambda: insider.last == reader.last, "the end")
    require("skip" in reader.tags() or reader.last == insider.last, "versions go on", seen=reader.tags())
    expect(
        "what the insider has",
        [one["sequence"] for one in insider.messages if one["visibility"] == "internal"],
        [hidden],
    )
    expect("what others have", [one["sequence"] for one in reader.messages if one["sequence"] == hidden], [])
    answer = await peer.call("verify", session_id=session, from_sequence=1, to_sequence=10)
    require(hidden not in [one[0] for one in answer["digests"]], "no digest shows it", seen=answer["digests"])
    await peer.refused("not_found", "message", {"session_id": session, "message_id": "x"})
    await scene.same(reader, peer)
    await scene.same(insider, inner)


@case("streaming.internal-alone", "8.7", "G20", "R15", needs=["agent"])
async def a_hidden_change_is_a_skip(scene: Scene) -> None:
    """A version that shows nothing to a subscription comes as a skip; nothing else of it is told."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.say("x")
    await held.end_step()
    await held.taken()
    reader = await scene.follow(peer, session)
    first = await peer.call("messages", session_id=session, limit=1)
    await held.wrote(await held.write("add_internal", parts=[{"type": "text", "text": "hint"}]))
    await peer.ping()
    shown = await peer.call("messages", session_id=session, limit=1, include_internal=True)
    require(
        shown["version"] == reader.last,
        "the reader stands where the session stands",
        expected=shown["version"],
        seen=reader.last,
    )
    page = await peer.call("messages", session_id=session, limit=1)
    expect("the newest visible message", page["items"][0]["sequence"], first["items"][0]["sequence"])
    expect("has_more counts visible messages", page["has_more"], True)
    await held.end()


@case("streaming.sequences", "1.3", "G13", needs=["agent"])
async def sequences_have_no_holes_and_stay(scene: Scene) -> None:
    """Messages are numbered 1, 2, 3, …, their parts too, over turns and a clear."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    for _ in range(3):
        held = await scene.turn(peer, session, agent)
        await held.say("a")
        await held.text("b")
        await held.end()
    items = await scene.copy(peer, session)
    expect("sequences", [one["sequence"] for one in items], list(range(1, 7)))
    expect("parts", [[part["sequence"] for part in one["parts"]] for one in items], [[1], [1, 2]] * 3)
    cleared = await peer.call("sessions.clear", session_id=session)
    expect("first_sequence", cleared["session"]["first_sequence"], 7)
    held = await scene.turn(peer, session, agent)
    await held.end()
    expect("after the clear", [one["sequence"] for one in await scene.copy(peer, session)], [7])
