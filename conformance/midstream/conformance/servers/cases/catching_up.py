"""What brings a replica up after an absence: the modes of a sync, and cursors of every kind (SPEC 5)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.proxy import Faults
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene, copied
from midstream.conformance.servers.suite import SUITE
from midstream.protocol.merge import Replica

case = SUITE.case


@case("catching-up.mid-stream", "5.1", "G7", "R28", needs=["agent"])
async def a_missed_text_is_brought_up(scene: Scene) -> None:
    """After text, tools and ends that it missed, a replica is brought up by its cursor, and equals a new one."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    first = await held.say("one ", "two ")
    await peer.ping()
    away = copied(reader)
    await held.append(first, "three ")
    await held.write("end_text", part_id=first)
    tool = await held.tool("input-streaming")
    await held.append(tool, '{"x":')
    await held.taken()
    back = await peer.subscribe(session, replica=away, limit=50)
    require(
        back.answer["sync"]["mode"] in {"replay", "catchup"},
        "a short absence needs no reset",
        seen=back.answer,
    )
    await scene.same(back, peer)
    await held.append(tool, "1}")
    await held.write("move_tool", part_id=tool, state="ready", input={"x": 1})
    await held.end()
    await scene.same(back, peer)


@case("catching-up.every-point", "5.1", "G7", needs=["agent"])
async def any_cursor_leads_to_the_same_state(scene: Scene) -> None:
    """Cursors of every version of a turn, in mid-stream too, lead to the same state, with no reset."""
    peer, writer = await scene.open(), await scene.open()
    session = await scene.session(peer)
    reader = await scene.follow(peer, session, include_internal=True)
    held = await scene.turn(writer, session)
    saved: list[Replica] = []

    async def note() -> None:
        await held.taken()
        await peer.ping()
        saved.append(copied(reader))

    text = await held.text("a")
    await note()
    reasoning = await held.text("b", kind="reasoning")
    await note()
    await held.append(text, "c")
    await held.append(reasoning, "d")
    await note()
    tool = await held.tool("ready")
    await note()
    await held.write("move_tool", part_id=tool, state="running")
    await held.write("move_tool", part_id=tool, state="running", output=1, preliminary=True)
    await note()
    await held.write("move_tool", part_id=tool, state="completed", output={"y": 2})
    await held.end_step()
    await note()
    await held.write("add_internal", parts=[{"type": "text", "text": "hint"}])
    await held.text("after", step="s2")
    await note()
    for replica in saved:
        other = await scene.open()
        back = await other.subscribe(session, replica=replica, include_internal=True, limit=50)
        require(
            back.answer["sync"]["mode"] != "reset",
            "a cursor of this epoch needs no reset",
            seen=back.answer["sync"]["mode"],
        )
        await scene.same(back, other)
    await held.end()
    await scene.same(reader, peer)


@case("catching-up.abandoned", "8.3", "R5", needs=["agent"])
async def parts_that_were_undone_leave_every_replica(scene: Scene) -> None:
    """Parts of an abandoned step leave the replicas that saw them, by the stream and by a sync (`part_count`)."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    await held.say("stays ")
    await held.end_step()
    await held.text("goes ", step="s2")
    await held.text("goes too", step="s2", kind="reasoning")
    await held.taken()
    await peer.ping()
    away = copied(reader)
    undone = await held.wrote(await held.write("abandon_step", step_id="s2"))
    expect("what the write gave back", undone.get("undone"), True)
    await peer.ping()
    expect("parts in the stream", len(reader.messages[-1]["parts"]), 1)
    other = await scene.open()
    back = await other.subscribe(session, replica=away, limit=50)
    expect("parts after the sync", len(back.messages[-1]["parts"]), 1)
    await scene.same(back, other)
    await held.end()


@case("catching-up.foreign-cursors", "5.3")
async def a_cursor_that_is_not_known_leads_to_a_reset(scene: Scene) -> None:
    """A cursor of an unknown epoch, or past what was published or committed, is no error: it leads to a `reset`."""
    peer = await scene.open()
    session = await scene.session(peer)
    await peer.call("sessions.update", session_id=session, title="t")
    reader = await scene.follow(peer, session)
    here: Map = {"epoch": reader.replica.epoch, "version": reader.last, "durable": reader.replica.durable}
    for cursor in (
        {**here, "epoch": "0123456789abcdef"},
        {**here, "epoch": "x"},
        {**here, "version": reader.last + 100_000},
        {**here, "durable": reader.last + 100_000, "version": reader.last + 100_000},
        {**here, "durable": reader.last + 1},
    ):
        answer = await peer.call("subscribe", session_id=session, cursor=cursor, limit=10)
        expect(f"the mode for {cursor}", answer["sync"]["mode"], "reset")


@case("catching-up.cheap", "5.1", needs=["agent"])
async def catching_up_costs_what_was_missed(scene: Scene) -> None:
    """Messages that did not change are not sent again: a replay of nothing but a title is short."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session, "x" * 20_000)
    await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    reader = await scene.follow(peer, session)
    away = copied(reader)
    await peer.call("sessions.update", session_id=session, title="t")
    back = await peer.subscribe(session, replica=away, limit=50)
    size = len(peer.codec.encode(back.answer))
    require(
        size < 1_200, "the answer has what was missed and little more", expected="below 1200 bytes", seen=size
    )
    await scene.same(back, peer)


@case("catching-up.clear", "10.1", "R11", needs=["agent"])
async def a_cursor_from_before_a_clear_is_brought_up(scene: Scene) -> None:
    """A cursor from before `sessions.clear` leads to the cleared session, by a reset or a replay."""
    peer = await scene.open()
    session = await scene.session(peer)
    answer = await scene.prompt(peer, session)
    await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    reader = await scene.follow(peer, session)
    away = copied(reader)
    await peer.call("sessions.clear", session_id=session)
    expect("messages that are left", reader.messages, [])
    back = await peer.subscribe(session, replica=away, limit=50)
    expect("messages that are left", back.messages, [])
    await scene.same(back, peer)


@case("catching-up.cut-at-any-byte", "3.6", "G7", "R2", "R13", needs=["agent"], seconds=40)
async def a_connection_cut_at_any_byte_loses_nothing(scene: Scene) -> None:
    """A reader whose connection is cut after any byte comes back with its cursor, and misses and doubles nothing."""
    writer = await scene.open()
    session = await scene.session(writer)
    held = await scene.turn(writer, session)
    text = await held.say("begin ")
    replica = copied(await scene.follow(writer, session))
    for _ in range(12):
        proxy = await scene.proxy()
        peer = await scene.open(url=proxy.url)
        reader = await peer.subscribe(session, replica=replica, limit=50)
        proxy.set(down=Faults(cut_after=proxy.connections[0].passed["down"] + scene.rng.randrange(1, 220)))
        for number in range(12):
            await held.append(text, f"word{number} ")
            if number % 5 == 4:
                tool = await held.tool("ready")
                await held.write("move_tool", part_id=tool, state="completed", output=number)
                text = await held.text("")
            await held.taken()
        await peer.ended()
        replica = copied(reader)
    peer = await scene.open()
    reader = await peer.subscribe(session, replica=replica, limit=50)
    await held.end()
    await scene.same(reader, peer)


@case("catching-up.paced", "6", needs=["agent"])
async def a_pace_brings_syncs_only(scene: Scene) -> None:
    """A subscription with `pace_ms` gets syncs only, few of them, and comes to the same state."""
    peer, writer = await scene.open(), await scene.open()
    session = await scene.session(writer)
    held = await scene.turn(writer, session)
    reader = await scene.follow(peer, session, pace_ms=100)
    text = await held.text()
    for number in range(100):
        await held.append(text, f"{number} ")
    await held.end()
    await peer.so(
        lambda: "running_turn_id" not in reader.session and len(reader.messages) > 1, "the end of the turn"
    )
    require(set(reader.tags()) <= {"sync"}, "only syncs come", expected="sync", seen=reader.tags())
    await scene.same(reader, peer)


@case("catching-up.new-turn", "5.5", "R9", needs=["agent"])
async def what_ended_and_what_began_is_in_the_sync(scene: Scene) -> None:
    """Who was away while a turn ended and another began finds both, in one sync."""
    peer = await scene.open()
    session = await scene.session(peer)
    agent = await scene.agent()
    held = await scene.turn(peer, session, agent)
    reader = await scene.follow(peer, session)
    await held.say("first")
    await peer.ping()
    away = copied(reader)
    await held.end()
    second = await scene.turn(peer, session, agent)
    await second.say("second")
    back = await peer.subscribe(session, replica=away, limit=50)
    states = {name: turn["state"] for name, turn in back.turns.items()}
    expect("the turns", states, {held.turn_id: "completed", second.turn_id: "running"})
    await scene.same(back, peer)
    await second.end()
