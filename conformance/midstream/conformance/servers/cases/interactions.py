"""Questions and approvals (SPEC 7.8, 7.9, 8.6, 8.8; G10, R19, R27)."""

from __future__ import annotations

from midstream.conformance.outcome import Failed, expect, require
from midstream.conformance.servers.book import CallRefused
from midstream.conformance.servers.frame import Map
from midstream.conformance.servers.scene import Scene
from midstream.conformance.servers.suite import SUITE

case = SUITE.case
APPROVED: Map = {"kind": "approval", "decision": "approved"}
DENIED: Map = {"kind": "approval", "decision": "denied", "reason": "no"}


def _answers(*values: object) -> Map:
    return {
        "kind": "question",
        "answers": [{"question_id": f"q{n}", "value": value} for n, value in enumerate(values, 1)],
    }


@case("interactions.approval", "8.6", "G10", needs=["agent"])
async def an_approval_is_asked_and_answered(scene: Scene) -> None:
    """An approval is pending with its tool `waiting-user`; the response resolves it, and the tool is `ready` again."""
    peer = await scene.open()
    for response in (APPROVED, DENIED):
        session = await scene.session(peer)
        held = await scene.turn(peer, session)
        reader = await scene.follow(peer, session)
        tool = await held.tool("ready")
        asked = await held.ask(tool=tool)
        await held.stored()
        await peer.ping()
        expect(
            "the states",
            [part.get("state", part.get("status")) for part in reader.messages[-1]["parts"]],
            ["waiting-user", "pending"],
        )
        expect("what the session counts", reader.session["pending_interactions"], 1)
        listed = await peer.call("interactions", session_id=session)
        expect("what is pending", [one["interaction"]["interaction_id"] for one in listed["items"]], [asked])
        answer = await peer.call("respond", session_id=session, interaction_id=asked, response=response)
        part = answer["interaction"]
        expect(
            "the outcome",
            (part["status"], part["response"], part["resolved_by"]),
            ("resolved", response, peer.welcome["subject"]),
        )
        expect("the part in the replica", reader.messages[-1]["parts"][1], part)
        expect("the tool", reader.messages[-1]["parts"][0]["state"], "ready")
        require("pending_interactions" not in reader.session, "none is pending", seen=reader.session)
        expect("what the worker is told", (await held.answered(asked))["response"], response)
        expect("pending ones", (await peer.call("interactions", session_id=session))["items"], [])
        await scene.same(reader, peer)
        await held.end()


@case("interactions.question", "8.6", needs=["agent"])
async def questions_take_fitting_answers_only(scene: Scene) -> None:
    """An answer that does not fit its question is `invalid` and leaves it pending; a fitting one resolves it."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    asked = await held.ask("question")
    await held.stored()
    good = _answers("a", "anything", ["x", "y"])
    for response in (
        APPROVED,
        _answers("c", "anything", ["x"]),
        _answers("a", "anything"),
        _answers("a", "anything", "x"),
        _answers(["a"], "anything", ["x"]),
        _answers("a", "anything", ["z"]),
        {**good, "answers": [*good["answers"], {"question_id": "q9", "value": "v"}]},
        {**good, "answers": [*good["answers"], good["answers"][0]]},
    ):
        await peer.refused(
            "invalid", "respond", {"session_id": session, "interaction_id": asked, "response": response}
        )
        expect("it is pending still", len((await peer.call("interactions", session_id=session))["items"]), 1)
    answer = await peer.call("respond", session_id=session, interaction_id=asked, response=good)
    expect("the response", answer["interaction"]["response"], good)
    await held.end()


@case("interactions.once", "8.6", "G10", "R27", needs=["agent"])
async def the_first_response_wins(scene: Scene) -> None:
    """Of two responses at once one wins; the other is `interaction_closed` with the winner's; a repeat gets the result."""
    peer, other = await scene.open(), await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    asked = await held.ask()
    await held.stored()
    readers = [await scene.follow(one, session) for one in (peer, other)]
    tries = [
        (
            one,
            response,
            await one.begin("respond", session_id=session, interaction_id=asked, response=response),
        )
        for one, response in ((peer, APPROVED), (other, DENIED))
    ]
    won: list[Map] = []
    lost: list[Map] = []
    for one, response, id in tries:
        try:
            expect(
                "the result has the caller's response",
                (await one.answer(id))["interaction"]["response"],
                response,
            )
            won.append(response)
        except CallRefused as refusal:
            lost.append(refusal.info)
    expect("who won and who lost", (len(won), len(lost)), (1, 1))
    details = lost[0].get("details", {})
    expect(
        "what the loser learns",
        (lost[0]["code"], details.get("status"), details.get("response")),
        ("interaction_closed", "resolved", won[0]),
    )
    await other.ping()
    await peer.ping()
    expect("both replicas", [one.messages[-1]["parts"][-1]["response"] for one in readers], won * 2)
    again = await peer.call("respond", session_id=session, interaction_id=asked, response=won[0])
    expect("the winner's repeat", again["interaction"]["response"], won[0])
    expect("versions", readers[0].tags(), ["change"])
    await held.end()


@case("interactions.other-response", "8.6", "G10", needs=["agent"])
async def another_response_of_the_same_subject_is_late(scene: Scene) -> None:
    """After an approval, another response is `interaction_closed`, also of who gave the first."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    asked = await held.ask()
    await held.stored()
    await peer.call("respond", session_id=session, interaction_id=asked, response=APPROVED)
    params = {"session_id": session, "interaction_id": asked, "response": DENIED}
    await peer.refused("interaction_closed", "respond", params, status="resolved", response=APPROVED)
    await held.end()


@case("interactions.expiry", "8.6", "R19", needs=["agent"])
async def a_question_expires(scene: Scene) -> None:
    """At `expires_at` a pending interaction is `expired`, its tool `ready`, and a response is too late."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    reader = await scene.follow(peer, session)
    tool = await held.tool("ready")
    asked = await held.ask(tool=tool, expires_in_ms=150)
    expect("the outcome", (await held.answered(asked))["status"], "expired")
    await peer.ping()
    part = reader.messages[-1]["parts"][-1]
    require(
        part["status"] == "expired" and part["resolved_at"] >= part["request"]["expires_at"],
        "it expired in time",
        seen=part,
    )
    expect("the tool", reader.messages[-1]["parts"][0]["state"], "ready")
    await peer.refused(
        "interaction_closed",
        "respond",
        {"session_id": session, "interaction_id": asked, "response": APPROVED},
        status="expired",
    )
    await held.end()


@case("interactions.ends-with-the-turn", "8.4", needs=["agent"])
async def questions_end_with_their_turn(scene: Scene) -> None:
    """A stop cancels pending interactions (`turn_stopped`); the agent can withdraw one (`withdrawn`)."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    first, second = await held.ask(), await held.ask()
    await held.write("withdraw", interaction_id=first)
    await held.stored()
    await peer.call("stop", session_id=session, turn_id=held.turn_id)
    parts = (await peer.call("messages", session_id=session))["items"][-1]["parts"]
    expect(
        "the interactions",
        [(one["interaction_id"], one["status"], one["cancel_reason"]) for one in parts],
        [(first, "cancelled", "withdrawn"), (second, "cancelled", "turn_stopped")],
    )
    await peer.refused(
        "interaction_closed",
        "respond",
        {"session_id": session, "interaction_id": second, "response": APPROVED},
        status="cancelled",
    )


@case("interactions.mode", "8.8", needs=["agent"])
async def a_mode_gives_approvals(scene: Scene) -> None:
    """`always-allow` resolves what is pending and what is asked later, says so, and leaves questions to people."""
    peer = await scene.open()
    session = await scene.session(peer)
    held = await scene.turn(peer, session)
    tool = await held.tool("ready")
    pending = await held.ask(tool=tool)
    await held.stored()
    reader = await scene.follow(peer, session)
    result = await peer.call("sessions.approval_mode", session_id=session, approval_mode="always-allow")
    expect(
        "the session",
        (result["session"]["approval_mode"], result["session"]["approval_mode_by"]),
        ("always-allow", peer.welcome["subject"]),
    )
    expect("it is one change", reader.tags(), ["change"])
    expect("what was pending", (await held.answered(pending))["response"], APPROVED)
    action = reader.messages[-1]
    expect(
        "the message that says so",
        (
            action["role"],
            action["state"],
            action.get("turn_id"),
            action["parts"][0]["action_type"],
            action["parts"][0]["state"],
        ),
        ("agent", "done", None, "approval_mode", "completed"),
    )
    other = await held.tool("ready")
    later, question = await held.ask(tool=other), await held.ask("question")
    await held.stored()
    parts = {
        part.get("interaction_id", part.get("part_id")): part
        for one in await scene.copy(peer, session)
        for part in one["parts"]
    }
    expect(
        "the later one",
        (parts[later]["status"], parts[later].get("approval_mode"), parts[other]["state"]),
        ("resolved", "always-allow", "ready"),
    )
    expect("the question", parts[question]["status"], "pending")
    before = await peer.call("sessions.get", session_id=session)
    expect(
        "the same mode again",
        await peer.call("sessions.approval_mode", session_id=session, approval_mode="always-allow"),
        before,
    )
    back = await peer.call("sessions.approval_mode", session_id=session, approval_mode="ask")
    if "approval_mode" in back["session"] and back["session"]["approval_mode"] != "ask":
        raise Failed("the mode goes back", expected="ask", seen=back["session"])
    await peer.ping()
    await scene.same(reader, peer)
    await held.end()
