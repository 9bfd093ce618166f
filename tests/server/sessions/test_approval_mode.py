"""The approval mode: who allowed what is seen by everybody, and no question answers itself (SPEC 8.8)."""

from __future__ import annotations

import asyncio

from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.errors import InteractionClosed
from midstream.protocol.frames import Answered
from midstream.protocol.model import (
    ActionPart,
    ApprovalMode,
    ApprovalResponse,
    InteractionPart,
    Message,
    Question,
    QuestionAnswer,
    QuestionResponse,
    Session,
    ToolPart,
)
from midstream.server import ToolCall, Turn
from midstream.server.sessions.commands import Answer
from tests.server.sessions.house import House, Street, in_simulation, refusal
from tests.server.sessions.recorder import Recorder
from tests.server.sessions.workers import Link, begin, remote_agents

APPROVED = ApprovalResponse(decision="approved")
DENIED = ApprovalResponse(decision="denied")
QUESTION = Question(question_id="q", question="Which?")


async def set_mode(house: House, mode: ApprovalMode, subject: str = "ann") -> Session:
    """Set the mode, as somebody."""
    params = calls.ApprovalModeParams(session_id="s", approval_mode=mode)
    kind = calls.SessionResult
    return (await house.call(kind, "sessions.approval_mode", params, subject=subject)).session


def modes(messages: list[Message]) -> list[object]:
    """Return what the conversation says of the mode: the data of each action about it."""
    return [
        part.data
        for message in messages
        for part in message.parts
        if isinstance(part, ActionPart) and part.action_type == "approval_mode"
    ]


def asks(messages: list[Message]) -> list[InteractionPart]:
    """Return all interactions, in order."""
    return [part for message in messages for part in message.parts if isinstance(part, InteractionPart)]


def tool_states(recorder: Recorder) -> list[str]:
    """Return each state that a reader was shown of any tool, in order."""
    return [
        part.state
        for change in recorder.changes
        for entry in change.content.messages
        for part in entry.parts
        if isinstance(part, ToolPart)
    ]


async def call_of(turn: Turn) -> ToolCall:
    """Return a tool call that is ready."""
    async with turn.step() as step:
        return await step.tool("t", input=1)


@in_simulation
async def test_the_mode_is_a_message_of_its_own_and_a_field_of_the_session(street: Street) -> None:
    """Who set it, and when; setting what it is changes nothing, whoever does it."""
    async with street.house() as house:
        made = await house.create()
        assert (made.session.approval_mode, made.session.approval_mode_by) == ("ask", UNSET)
        allowed = await set_mode(house, "always-allow", "bob")
        assert (allowed.approval_mode, allowed.approval_mode_by) == ("always-allow", "bob")
        [message] = await house.messages()
        assert (message.role, message.state, message.turn_id) == ("agent", "done", UNSET)
        said = {"approval_mode": "always-allow", "set_by": "bob", "set_at": message.created_at}
        assert modes([message]) == [said]
        assert await set_mode(house, "always-allow", "ann") == allowed
        asked = await set_mode(house, "ask", "ann")
        assert (asked.approval_mode, asked.approval_mode_by) == ("ask", UNSET)
        messages = await house.messages()
        at = messages[-1].created_at
        assert modes(messages) == [said, {"approval_mode": "ask", "set_by": "ann", "set_at": at}]


@in_simulation
async def test_an_approval_is_given_in_the_change_that_writes_it(street: Street) -> None:
    """It says who allowed it and that it was the mode; its tool was never seen to wait."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        await set_mode(house, "always-allow", "bob")
        turn = await house.begin("a")
        call = await call_of(turn)
        before = (await house.session()).version
        approval = await turn.ask_approval(call, title="May I?")
        assert (approval.approved, approval.status, approval.resolved_by) == (True, "resolved", "bob")
        assert approval.by_mode
        after = await house.session()
        assert (after.version, after.session.pending_interactions) == (before + 1, 0)
        [part] = asks(await house.messages())
        assert (part.status, part.response, part.resolved_by) == ("resolved", APPROVED, "bob")
        assert (part.approval_mode, part.tool_call_id) == ("always-allow", call.tool_call_id)
        assert part.resolved_at is not UNSET
        await call.run()
        await call.complete("done")
        await house.complete(turn)
        assert tool_states(recorder) == ["ready", "running", "completed"]
        await house.equal(recorder)


@in_simulation
async def test_a_tool_that_runs_and_asks_is_ready_again_as_after_an_answer(street: Street) -> None:
    """So an agent does the same in both modes: it asks, and claims the call anew."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        await set_mode(house, "always-allow")
        turn = await house.begin("a")
        call = await call_of(turn)
        await call.run()
        await call.progress("half")
        assert (await turn.ask_approval(call, title="May I go on?")).approved
        await call.run()
        await call.complete("all")
        await house.complete(turn)
        assert tool_states(recorder) == ["ready", "running", "running", "ready", "running", "completed"]
        await house.equal(recorder)


@in_simulation
async def test_what_could_not_be_asked_about_is_not_given_either(street: Street) -> None:
    """The mode answers for a person, and does not bend the table of a tool's states."""
    async with street.house() as house:
        await house.create()
        await set_mode(house, "always-allow")
        turn = await house.begin("a")
        async with turn.step() as step:
            streaming = await step.tool("t")
            done = await step.tool("t", input=1)
            await done.complete(1)
            version = (await house.session()).version
            for call in (streaming, done):
                error = await refusal(turn.ask_approval(call, title="?"))
                assert (error.code, error.details["to"]) == ("illegal_transition", "waiting-user")
        assert asks(await house.messages()) == []
        assert (await house.session()).version == version


@in_simulation
async def test_the_mode_gives_the_approvals_that_wait_in_its_own_change_and_answers_no_question(
    street: Street,
) -> None:
    """Of three approvals and a question the question stays; whoever answers an approval then is late."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        tools = [await call_of(turn) for _ in range(2)]
        approving = [asyncio.create_task(turn.ask_approval(call, title="?")) for call in (*tools, None)]
        asking = asyncio.create_task(turn.ask(QUESTION, title="?"))
        await recorder.until(lambda: recorder.replica.session and _pending(recorder) == 4)
        frames = len(recorder.frames)
        session = await set_mode(house, "always-allow", "bob")
        assert (len(recorder.frames), session.pending_interactions) == (frames + 1, 1)
        running = (await house.turn()).turn
        assert running is not None
        assert running.phase == "waiting-user"
        for given in await asyncio.gather(*approving):
            assert (given.approved, given.resolved_by) == (True, "bob")
        for part in asks(await house.messages()):
            if part.interaction_type == "question":
                continue
            assert part.approval_mode == "always-allow"
            late = await refusal(house.respond(part.interaction_id, DENIED))
            assert isinstance(late, InteractionClosed)
            assert (late.details["status"], late.details["resolved_by"]) == ("resolved", "bob")
        [question] = await house.asked()
        assert not asking.done()
        answer = QuestionResponse(answers=[QuestionAnswer(question_id="q", value="this")])
        await house.respond(question.interaction.interaction_id, answer)
        assert (await asking).values == {"q": "this"}
        answered = [part.approval_mode for part in asks(await house.messages())]
        assert (answered.count("always-allow"), answered.count(UNSET)) == (3, 1)
        await house.complete(turn)
        await house.equal(recorder)


def _pending(recorder: Recorder) -> int:
    session = recorder.replica.session
    return session.pending_interactions if session else 0


@in_simulation
async def test_a_denial_and_the_mode_at_once_have_one_outcome(street: Street) -> None:
    """Whichever is first in the session's order; the agent, the answer and the part agree."""
    async with street.house() as house:
        await house.create()
        winners: set[bool] = set()
        for first in ("denial", "mode"):
            await set_mode(house, "ask")
            turn = await house.begin(f"m-{first}")
            asking = asyncio.create_task(turn.ask_approval(await call_of(turn), title="?"))
            while not (asked := await house.asked()):
                pass
            params = calls.RespondParams(
                session_id="s", interaction_id=asked[0].interaction.interaction_id, response=DENIED
            )
            allow = calls.ApprovalModeParams(session_id="s", approval_mode="always-allow")
            answers: dict[str, asyncio.Future[Answer]] = {}
            for name in ("denial", "mode") if first == "denial" else ("mode", "denial"):
                answers[name] = (
                    house.post("respond", params, subject="bob")
                    if name == "denial"
                    else house.post("sessions.approval_mode", allow, subject="ann")
                )
            approval, denied = await asking, await answers["denial"]
            assert isinstance(await answers["mode"], calls.SessionResult)
            part = asks(await house.messages())[-1]
            if approval.approved:
                assert isinstance(denied, InteractionClosed)
                assert (denied.details["resolved_by"], part.approval_mode) == ("ann", "always-allow")
            else:
                assert isinstance(denied, calls.RespondResult)
                assert (part.response, part.resolved_by, part.approval_mode) == (DENIED, "bob", UNSET)
            assert approval.approved == (first == "mode")
            winners.add(approval.approved)
            await house.complete(turn)
        assert winners == {True, False}


@in_simulation
async def test_going_back_to_asking_takes_nothing_back_and_asks_from_then_on(street: Street) -> None:
    """What was given stays given, also where its tool has not run yet."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        await set_mode(house, "always-allow")
        given, next_one = await call_of(turn), await call_of(turn)
        assert (await turn.ask_approval(given, title="?")).approved
        await set_mode(house, "ask")
        asking = asyncio.create_task(turn.ask_approval(next_one, title="?"))
        while not (asked := await house.asked()):
            pass
        await given.run()
        await given.complete(1)
        assert [one.interaction.tool_call_id for one in asked] == [next_one.tool_call_id]
        await house.respond(asked[0].interaction.interaction_id, DENIED)
        denied = await asking
        assert (denied.approved, denied.by_mode) == (False, False)


@in_simulation
async def test_a_worker_is_answered_as_an_agent_in_the_server_is(street: Street) -> None:
    """What it asks is given at once, and what waits when the mode changes is given then."""
    agents = remote_agents()
    async with street.house(remote=agents) as house:
        link = Link("w")
        remote = await begin(house, agents, link)
        remote.call_tool()
        remote.ask("first")
        await remote.acknowledged(durable=True)
        assert link.of(Answered) == []
        await set_mode(house, "always-allow", "bob")
        remote.ask("second")
        await remote.acknowledged(durable=True)
        heard = [
            (frame.interaction.interaction_id, frame.interaction.approval_mode) for frame in link.of(Answered)
        ]
        assert heard == [("first", "always-allow"), ("second", "always-allow")]
        remote.run()
        await remote.acknowledged(durable=True)
        states = [part.state for part in (await house.messages())[1].parts if isinstance(part, ToolPart)]
        assert states == ["running"]


@in_simulation
async def test_the_mode_outlives_crashes_and_clears_and_no_fork_has_it(street: Street) -> None:
    """A copy is another conversation, in which nobody allowed anything."""
    async with street.house() as house:
        await house.create()
        await set_mode(house, "always-allow", "bob")
        await house.crash()
    async with street.house() as house:
        session = await house.clear()
        assert (session.approval_mode, session.approval_mode_by) == ("always-allow", "bob")
        turn = await house.begin("a")
        assert (await turn.ask_approval(title="?")).resolved_by == "bob"
        await house.complete(turn)
        params = calls.ForkParams(session_id="s", new_session_id="copy")
        copy = (await house.call(calls.SessionResult, "sessions.fork", params)).session
        assert (copy.approval_mode, copy.approval_mode_by) == ("ask", UNSET)
        listed = await house.call(calls.ListResult, "sessions.list", calls.ListParams())
        assert {one.session_id: one.approval_mode for one in listed.items} == {
            "s": "always-allow",
            "copy": "ask",
        }
        assert asks(await house.messages("copy"))[0].approval_mode == "always-allow"


@in_simulation
async def test_an_archived_session_keeps_its_mode(street: Street) -> None:
    """The change would be a message, and it takes none."""
    async with street.house() as house:
        await house.create()
        await house.call(calls.SessionResult, "sessions.archive", calls.ArchiveParams(session_id="s"))
        params = calls.ApprovalModeParams(session_id="s", approval_mode="always-allow")
        error = await refusal(house.call(calls.SessionResult, "sessions.approval_mode", params))
        assert (error.code, error.details) == ("refused", {"reason": "archived"})
        assert await house.messages() == []
