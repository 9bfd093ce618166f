"""A server that is killed and comes back (SPEC 2.7, 5.4, 9, 14.9; G1, G4, G12, G24, G27, R5 to R7, R35, R36)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.scene import Scene, copied
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


@case(
    "restarts.one-long-day",
    "9",
    "G1",
    "G3",
    "G4",
    "G5",
    "G12",
    "G24",
    "G27",
    "R5",
    "R7",
    "R35",
    "R36",
    needs=["restart", "agent"],
    seconds=150,
)
async def nothing_that_was_acknowledged_is_lost(scene: Scene) -> None:  # noqa: PLR0915 - a day is told in order
    """After `kill -9` what was acknowledged is there, lost text leaves every replica, versions are not used again, and turns go on."""
    peer = await scene.open()
    session, quiet = await scene.session(peer), await scene.session(peer, title="quiet")
    key = scene.new_id("key")
    keyed = await peer.call("sessions.create", key=key, title="keyed")
    parts = [{"type": "text", "text": "accepted"}]
    for round_number in range(3):
        agent = await scene.agent()
        reader = await scene.follow(peer, session)
        prompt = {"session_id": session, "message_id": f"m{round_number}", "parts": parts}
        answer = await peer.call("prompt", **prompt)
        queued = {**prompt, "message_id": f"q{round_number}", "delivery": "queue"}
        await peer.call("prompt", **queued)
        held = await agent.attach(session, answer["turn_id"])
        hint = await held.write("add_internal", parts=[{"type": "text", "text": "hint"}])
        given = await held.wrote(hint)
        refused = await held.write("move_tool", part_id="none", state="running")
        refusal = await held.refusal(refused)
        text = await held.say("kept ")
        tool = await held.tool("ready")
        await held.write("move_tool", part_id=tool, state="running")
        durable = await held.taken()
        require(
            durable == held.n - 1, "a claim is durable when acknowledged", expected=held.n - 1, seen=durable
        )
        kept = held.n
        for number in range(30):
            await held.append(text, f"maybe lost {number} ")
        await held.taken()
        await peer.ping()
        away, before = copied(reader), reader.last
        await scene.restart()
        peer = await scene.open()
        back = await peer.subscribe(session, replica=away, limit=50)
        require(
            back.last > before, "G4: no version is used again", expected=f"above {before}", seen=back.last
        )
        await scene.same(back, peer)
        expect("G3: the repeat", await peer.call("prompt", **prompt), answer)
        expect("G2: what waits", back.session["queue"], [queued["message_id"]])
        expect("G27: the turn", (await peer.call("turn", session_id=session))["turn"]["state"], "running")
        agent = await scene.agent(agent.name, agent.instance)
        again = await agent.attach(session, answer["turn_id"], generation=1)
        expect("G28: results", dict(map(tuple, again.result.get("results", []))).get(hint), given)
        expect("G28: refusals", dict(map(tuple, again.result.get("refused", []))).get(refused), refusal)
        require(kept <= again.n <= held.n, "G24: the next write", expected=(kept, held.n), seen=again.n)
        for number in range(again.n - kept, 30):
            await again.append(text, f"maybe lost {number} ")
        await again.write("move_tool", part_id=tool, state="completed", output=1)
        await again.end()
        await peer.ping()
        said = [
            part["text"]
            for one in back.messages
            if one.get("turn_id") == answer["turn_id"] and one["role"] == "agent"
            for part in one["parts"]
            if part["type"] == "text"
        ]
        expect("G25: the text", said, ["kept " + "".join(f"maybe lost {number} " for number in range(30))])
        follow_up = await agent.attach(session, back.session["running_turn_id"])
        await follow_up.end()
        await peer.ping()
        await scene.same(back, peer)
    expect(
        "a session nobody touched",
        (await peer.call("sessions.get", session_id=quiet))["session"]["title"],
        "quiet",
    )
    expect(
        "a key after restarts",
        (await peer.call("sessions.create", key=key, title="keyed"))["session"]["session_id"],
        keyed["session"]["session_id"],
    )


@case("restarts.goaway", "3.9", needs=["restart", "drain"], seconds=90)
async def a_server_that_stops_says_so(scene: Scene) -> None:
    """A server that stops says `goaway` to everybody, with delays that differ, and closes with 4000 those who stay."""
    peers = [await scene.open() for _ in range(3)]
    await scene.drain()
    delays: set[int] = set()
    for peer in peers:
        frame = await peer.until(lambda one: one.tag == "goaway", "goaway")
        delays.add(frame.plain[2])
    expect("different delays", len(delays), len(peers))
    for peer in peers:
        expect("the close code of who stays", await peer.ended(60), 4000)
    await scene.restart()
