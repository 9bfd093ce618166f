"""Summaries and segments (SPEC 2.8, 7.3, 7.15, 8.10)."""

from __future__ import annotations

from midstream.conformance.outcome import expect, require
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.peer import Peer
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case


async def _filled(scene: Scene, peer: Peer, count: int) -> str:
    session = await scene.session(peer)
    for number in range(count):
        answer = await scene.prompt(peer, session, f"text {number}")
        await peer.call("stop", session_id=session, turn_id=answer["turn_id"])
    return session


@case("summaries.compact", "8.10", needs=["agent"])
async def a_summary_closes_a_segment(scene: Scene) -> None:
    """`compact` stores a summary in one change that touches the session alone; a repeat is harmless, another text is not."""
    peer = await scene.open()
    session = await _filled(scene, peer, 6)
    reader = await scene.follow(peer, session)
    stored = await peer.call("compact", session_id=session, through_sequence=3, summary="three")
    summary = stored["summary"]
    expect(
        "the summary",
        (summary["from_sequence"], summary["through_sequence"], summary["text"]),
        (1, 3, "three"),
    )
    content = next(one.plain[4] for one in reader.frames if one.tag == "change")
    expect("the change", (sorted(content), content["session"]["summarized_through"]), (["session"], 3))
    again = await peer.call("compact", session_id=session, through_sequence=3, summary="three")
    expect("a repeat", (again["summary"], reader.tags()), (summary, ["change"]))
    await peer.refused(
        "idempotency_conflict", "compact", {"session_id": session, "through_sequence": 3, "summary": "other"}
    )
    for through in (2, 7):
        await peer.refused(
            "invalid",
            "compact",
            {"session_id": session, "through_sequence": through, "summary": "s"},
            field="through_sequence",
        )
    second = await peer.call("compact", session_id=session, through_sequence=5, summary="five")
    expect("the next segment", second["summary"]["from_sequence"], 4)
    await scene.same(reader, peer)


@case("summaries.segments", "7.3", "G14", needs=["agent"])
async def segments_are_walked_without_holes(scene: Scene) -> None:
    """A walk with `segment` visits each segment with its summary, and each message once; long ones are cut."""
    peer = await scene.open()
    session = await _filled(scene, peer, 6)
    await peer.call("compact", session_id=session, through_sequence=3, summary="three")
    await peer.call("compact", session_id=session, through_sequence=5, summary="five")
    sources: list[tuple[str, str, bool]] = []
    for limit in (1, 2, 50):
        seen: list[int] = []
        sources.clear()
        before: Map = {}
        for _ in range(12):
            page = await peer.call("messages", session_id=session, segment=True, limit=limit, **before)
            seen = [one["sequence"] for one in page["items"]] + seen
            sources.append((page["source"], page.get("summary", {}).get("text", ""), page.get("cut", False)))
            if not page["has_more"]:
                break
            before = {"before_sequence": page["next_before_sequence"]}
        expect(f"the messages with limit {limit}", seen, [1, 2, 3, 4, 5, 6])
        expect("the first page", sources[0][:2], ("active", "five"))
    expect(
        "the segments",
        sources,
        [("active", "five", False), ("segment", "five", False), ("segment", "three", False)],
    )


@case("summaries.open", "8.10", needs=["agent"])
async def what_can_change_is_not_summarized(scene: Scene) -> None:
    """A `compact` over a message that is open is `refused` (`message_open`); the agent can store one of what is closed."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    await held.say("open")
    await peer.refused(
        "refused",
        "compact",
        {"session_id": session, "through_sequence": 2, "summary": "s"},
        reason="message_open",
    )
    given = await held.wrote(await held.write("compact", through_sequence=1, summary="one"))
    require("subject" not in given["summary"], "the agent's has no subject", seen=given)
    await held.end()


@case("summaries.clear", "10.1", needs=["agent"])
async def a_clear_removes_summaries(scene: Scene) -> None:
    """`sessions.clear` removes the summaries with the messages."""
    peer = await scene.open()
    session = await _filled(scene, peer, 2)
    await peer.call("compact", session_id=session, through_sequence=1, summary="one")
    cleared = (await peer.call("sessions.clear", session_id=session))["session"]
    expect("summarized_through", cleared.get("summarized_through", 0), 0)
    page = await peer.call("messages", session_id=session, segment=True)
    expect(
        "the active segment",
        (page["source"], page.get("summary"), page["items"]),
        ("active", None, list[Map]()),
    )
