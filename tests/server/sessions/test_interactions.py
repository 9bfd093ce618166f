"""Interactions: asked once, answered once, and the tool that waits moves in the same change."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec import UNSET, structs

from midstream.protocol.errors import IllegalTransition, InteractionClosed, InvalidRequest
from midstream.protocol.model import (
    ApprovalResponse,
    InteractionPart,
    InteractionRequest,
    InteractionResponse,
    Question,
    QuestionAnswer,
    QuestionResponse,
    ToolPart,
    ToolState,
)
from midstream.server.sessions import interactions
from midstream.server.sessions.expiries import Expiries
from tests.server.sessions.pure_session import PureSession, snapshot, streaming_text
from tests.server.sessions.pure_turns import answer, end, prompt, running

APPROVED = ApprovalResponse(decision="approved")
DENIED = ApprovalResponse(decision="denied", reason="no")
TEXTS = InteractionRequest(title="?", questions=[Question(question_id="q", question="Which?")])


def ask(
    session: PureSession,
    message: int,
    *,
    request: InteractionRequest | None = None,
    tool: int | None = None,
) -> str:
    """Ask, with an approval where nothing else is asked; ``tool`` is the part that waits."""
    draft = session.draft()
    request = request or InteractionRequest(title="?")
    waits = None
    if tool is not None:
        part = draft.message(message).part(tool)
        assert isinstance(part, ToolPart)
        waits = (message, part)
    name = draft.ids.new("ask")
    interactions.ask(
        draft,
        message,
        interaction_id=name,
        interaction_type="approval" if request.questions is UNSET else "question",
        request=request,
        tool=waits,
    )
    session.commit(draft)
    return name


def asked(session: PureSession, name: str) -> InteractionPart:
    """The interaction as clients see it, and as the store has it: they must be one."""
    sequence, part = next(
        (message.sequence, part)
        for message in session.messages()
        for part in message.parts
        if isinstance(part, InteractionPart) and part.interaction_id == name
    )
    loaded = PureSession(session.store)
    assert part in loaded.message(sequence).parts
    return part


def respond(session: PureSession, name: str, response: InteractionResponse, subject: str = "ann") -> None:
    """Answer an interaction, and commit it."""
    found = session.projection.find_interaction(name)
    assert found is not None
    draft = session.draft()
    interactions.respond(draft, found[0].head.sequence, found[1], response, subject=subject)
    session.commit(draft)


def with_tool(state: ToolState = "ready") -> tuple[PureSession, int]:
    """A turn whose agent message streams, with one tool in it."""
    session = PureSession()
    prompt(session, "m")
    return session, answer(session, ToolPart(tool_call_id="c", tool_name="t", state=state, input=1))


def tool_state(session: PureSession, message: int) -> str:
    """The state of the message's first part."""
    part = session.message(message).parts[0]
    assert isinstance(part, ToolPart)
    return part.state


def phase(session: PureSession) -> str:
    """The phase of the turn that runs."""
    return running(session).phase


@pytest.mark.parametrize("state", ["ready", "running"])
def test_asking_about_a_tool_lets_it_wait_in_the_same_change(state: ToolState) -> None:
    """One version: the question, the tool that waits, the phase, the count."""
    session, message = with_tool(state)
    version = session.versions.published
    name = ask(session, message, tool=1)
    assert session.versions.published == version + 1
    assert (tool_state(session, message), phase(session)) == ("waiting-user", "waiting-user")
    assert session.projection.session.pending_interactions == 1
    part = asked(session, name)
    assert (part.status, part.tool_call_id, part.interaction_type) == ("pending", "c", "approval")


def test_a_tool_with_preliminary_output_can_wait() -> None:
    """What it has shown stays; only a running tool is marked preliminary."""
    session = PureSession()
    prompt(session, "m")
    shown = ToolPart(tool_call_id="c", tool_name="t", state="running", input=1, output=50, preliminary=True)
    message = answer(session, shown)
    ask(session, message, tool=1)
    part = session.message(message).parts[0]
    assert isinstance(part, ToolPart)
    assert (part.state, part.output, part.preliminary) == ("waiting-user", 50, UNSET)


@pytest.mark.parametrize("state", ["input-streaming", "completed"])
def test_a_tool_that_cannot_wait_refuses_the_question(state: ToolState) -> None:
    """And nobody was asked."""
    session, message = with_tool(state)
    before = snapshot(session)
    with pytest.raises(IllegalTransition):
        ask(session, message, tool=1)
    assert snapshot(session) == before


@pytest.mark.parametrize("response", [APPROVED, DENIED])
def test_the_first_answer_wins_and_the_tool_is_ready_again(response: ApprovalResponse) -> None:
    """Whatever was decided; who answered and when is kept."""
    session, message = with_tool()
    name = ask(session, message, tool=1)
    version = session.versions.published
    respond(session, name, response)
    assert session.versions.published == version + 1
    part = asked(session, name)
    assert (part.status, part.response, part.resolved_by) == ("resolved", response, "ann")
    assert part.resolved_at == session.now
    assert (tool_state(session, message), phase(session)) == ("ready", "waiting-model")
    assert session.projection.session.pending_interactions == 0


def test_whoever_comes_late_is_told_who_won() -> None:
    """The outcome stands in the error, and nothing changes."""
    session, message = with_tool()
    name = ask(session, message, tool=1)
    respond(session, name, DENIED)
    before = snapshot(session)
    with pytest.raises(InteractionClosed) as late:
        respond(session, name, APPROVED, "bob")
    assert late.value.details == {
        "id": name,
        "status": "resolved",
        "response": {"kind": "approval", "decision": "denied", "reason": "no"},
        "resolved_by": "ann",
    }
    assert snapshot(session) == before


def test_only_the_winners_own_answer_is_a_repeat() -> None:
    """The same subject with the same response."""
    session, message = with_tool()
    name = ask(session, message)
    assert not interactions.is_repeat(asked(session, name), DENIED, "ann")
    respond(session, name, DENIED)
    part = asked(session, name)
    assert interactions.is_repeat(part, DENIED, "ann")
    assert not interactions.is_repeat(part, DENIED, "bob")
    assert not interactions.is_repeat(part, structs.replace(DENIED, reason=UNSET), "ann")


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (InteractionRequest(title="?"), QuestionResponse(answers=[])),
        (TEXTS, APPROVED),
        (TEXTS, QuestionResponse(answers=[])),
        (TEXTS, QuestionResponse(answers=[QuestionAnswer(question_id="other", value="x")])),
    ],
)
def test_an_answer_that_does_not_fit_leaves_it_pending(
    request_: InteractionRequest, response: InteractionResponse
) -> None:
    """Another one may come."""
    session, message = with_tool()
    name = ask(session, message, request=request_)
    before = snapshot(session)
    with pytest.raises(InvalidRequest):
        respond(session, name, response)
    assert snapshot(session) == before
    assert asked(session, name).status == "pending"


def test_a_question_without_questions_is_refused() -> None:
    """An agent's fault, and no part of the conversation."""
    session, message = with_tool()
    before = snapshot(session)
    with pytest.raises(InvalidRequest):
        ask(session, message, request=InteractionRequest(title="?", questions=[]))
    assert snapshot(session) == before


def test_expiry_ends_those_whose_time_has_come_and_moves_their_tools() -> None:
    """At the time itself, not before; the others go on waiting."""
    session, message = with_tool()
    due = session.now + 1_000
    early = ask(session, message, request=InteractionRequest(title="?", expires_at=due), tool=1)
    late = ask(session, message, request=InteractionRequest(title="?", expires_at=due + 1))
    ask(session, message)
    expiries = Expiries()
    assert seconds_left(session, expiries, session.now) == (due - session.now) / 1000
    assert due_at(session, expiries, due - 1) == []
    [(where, part)] = due_at(session, expiries, due)
    assert (where, part.interaction_id) == (message, early)
    draft = session.draft()
    interactions.expire(draft, where, part)
    session.commit(draft)
    ended = asked(session, early)
    assert (ended.status, ended.resolved_at, ended.response, ended.resolved_by) == (
        "expired",
        session.now,
        UNSET,
        UNSET,
    )
    assert (tool_state(session, message), phase(session)) == ("ready", "waiting-user")
    assert seconds_left(session, expiries, due) == 0.001
    assert asked(session, late).status == "pending"
    with pytest.raises(InteractionClosed) as too_late:
        respond(session, early, APPROVED)
    assert too_late.value.details["status"] == "expired"
    assert too_late.value.details["resolved_by"] is None


def test_nothing_expires_where_nothing_is_asked_or_all_is_answered() -> None:
    """The loop need not wake for it."""
    session, message = with_tool()
    expiries = Expiries()
    assert seconds_left(session, expiries, session.now) is None
    name = ask(session, message, request=InteractionRequest(title="?", expires_at=session.now + 5))
    respond(session, name, APPROVED)
    assert seconds_left(session, expiries, session.now) is None
    assert due_at(session, expiries, 2**60) == []
    ask(session, message)
    assert seconds_left(session, expiries, session.now) is None


def test_the_first_of_both_clocks_decides() -> None:
    """The wall may be set back, and the other clock may stand still while the machine sleeps."""
    session, message = with_tool()
    start = session.now
    name = ask(session, message, request=InteractionRequest(title="?", expires_at=start + 1_001))
    for elapsed_s, wall_ms, left in (
        (0.0, start, 1.0),
        (0.5, start - 600_000, 0.5),
        (0.999, start - 600_000, 0.001),
        (1.0, start - 600_000, 0.0),
        (0.5, start + 1_000, 0.001),
        (0.5, start + 1_001, 0.0),
    ):
        expiries = Expiries()
        expiries.follow(session.projection, session.versions, now=100.0)
        assert expiries.seconds(100.0 + elapsed_s, wall_ms) == pytest.approx(left, abs=1e-6)
        due = expiries.due(session.projection, now=100.0 + elapsed_s + 1e-9, wall_ms=wall_ms)
        assert [part.interaction_id for _, part in due] == ([name] if left == 0 else [])


def test_a_deadline_stays_what_it_was_when_other_things_are_asked() -> None:
    """Each is reckoned once, from the commit that asked."""
    session, message = with_tool()
    expiries = Expiries()
    ask(session, message, request=InteractionRequest(title="?", expires_at=session.now + 1_001))
    expiries.follow(session.projection, session.versions, now=100.0)
    ask(session, message, request=InteractionRequest(title="?", expires_at=session.now + 60_001))
    expiries.follow(session.projection, session.versions, now=100.9)
    assert expiries.seconds(100.9, session.now) == pytest.approx(0.1)


def seconds_left(session: PureSession, expiries: Expiries, wall_ms: int) -> float | None:
    """How long the loop may sleep, as far as what waits allows; the monotonic clock stands."""
    expiries.follow(session.projection, session.versions, now=0.0)
    return expiries.seconds(0.0, wall_ms)


def due_at(session: PureSession, expiries: Expiries, wall_ms: int) -> list[tuple[int, InteractionPart]]:
    """What expires at a time of the wall; the monotonic clock stands."""
    expiries.follow(session.projection, session.versions, now=0.0)
    return expiries.due(session.projection, now=0.0, wall_ms=wall_ms)


def test_a_tool_that_has_moved_on_is_not_moved_back() -> None:
    """The agent did not wait for the answer: it ended the tool."""
    session, message = with_tool()
    name = ask(session, message, tool=1)
    draft = session.draft()
    part = draft.message(message).part(1)
    assert isinstance(part, ToolPart)
    draft.put_part(message, structs.replace(part, state="completed", output=2))
    session.commit(draft)
    respond(session, name, APPROVED)
    assert tool_state(session, message) == "completed"
    assert asked(session, name).status == "resolved"


def test_the_tool_is_found_in_the_message_that_a_steering_input_closed() -> None:
    """The question may stand in a later message than its tool."""
    session, message = with_tool()
    prompt(session, "steer")
    draft = session.draft()
    draft.close_message(message)
    session.commit(draft)
    later = answer(session, streaming_text())
    draft = session.draft()
    tool = draft.message(message).part(1)
    assert isinstance(tool, ToolPart)
    name = "ask_later"
    interactions.ask(
        draft,
        later,
        interaction_id=name,
        interaction_type="approval",
        request=InteractionRequest(title="?"),
        tool=(message, tool),
    )
    session.commit(draft)
    assert tool_state(session, message) == "waiting-user"
    respond(session, name, APPROVED)
    assert tool_state(session, message) == "ready"


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("side_by_side", [True, False])
def test_calls_that_share_an_id_each_wait_for_their_own_answer(
    order: tuple[int, ...], *, side_by_side: bool
) -> None:
    """Providers number their calls anew; an answer moves the call that was asked about, and no other."""
    session = PureSession()
    prompt(session, "m")
    message = answer(session, ToolPart(tool_call_id="c", tool_name="t", state="ready", input=0))
    names: list[str] = []
    places = [1, 2, 3] if side_by_side else [1, 3, 5]
    for number, place in enumerate(places):
        if number:
            draft = session.draft()
            tool = ToolPart(tool_call_id="c", tool_name="t", state="ready", input=number)
            assert draft.add_part(message, tool) == place
            session.commit(draft)
        if not side_by_side:
            names.append(ask(session, message, tool=place))
    names = names or [ask(session, message, tool=place) for place in places]
    for count, index in enumerate(order, 1):
        respond(session, names[index], APPROVED)
        parts = [session.message(message).parts[place - 1] for place in places]
        states = [part.state for part in parts if isinstance(part, ToolPart)]
        assert states == ["ready" if one in order[:count] else "waiting-user" for one in range(3)]


def test_an_interaction_is_over_with_its_turn() -> None:
    """It is cancelled, and an answer that comes then is late."""
    session, message = with_tool()
    name = ask(session, message, tool=1)
    end(session, "stopped")
    part = asked(session, name)
    assert (part.status, part.cancel_reason) == ("cancelled", "turn_stopped")
    assert session.projection.find_interaction(name) is None
    late = interactions.closed(part)
    assert late.details == {"id": name, "status": "cancelled", "response": None, "resolved_by": None}
