"""Input: each that is accepted starts a turn, waits, is absorbed or is cancelled, and says where it is."""

from __future__ import annotations

import pytest
from msgspec import UNSET, structs

from midstream.protocol.calls import Delivery
from midstream.protocol.errors import IdempotencyConflict, InvalidRequest, LimitExceeded, Refused
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart, ToolPart, UserPart
from midstream.protocol.transitions import is_open
from midstream.server.sessions import turns
from tests.server.sessions.pure_session import NOW, PureSession, new_input, snapshot, streaming_text
from tests.server.sessions.pure_turns import DELIVERIES, answer, end, prompt, running

# Accepting


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_any_input_starts_a_turn_where_none_runs(delivery: Delivery) -> None:
    """Turn, message and input name each other, in one version."""
    session = PureSession()
    item = prompt(session, "m", delivery)
    turn = running(session)
    message = session.message(1)
    assert (item.state, item.turn_id, item.parts) == ("started", turn.turn_id, [])
    assert (message.message_id, message.turn_id, message.role) == ("m", turn.turn_id, "user")
    assert [part.text for part in message.parts if isinstance(part, TextPart)] == ["text of m"]
    assert (turn.state, turn.phase, turn.revision) == ("running", "starting", session.versions.published)
    assert session.projection.session.running_turn_id == turn.turn_id
    assert session.store.inputs["m"] == item


@pytest.mark.parametrize("delivery", ["auto", "queue"])
def test_an_input_waits_while_a_turn_runs(delivery: Delivery) -> None:
    """It is stored with its parts, and is no message yet."""
    session = PureSession()
    prompt(session, "first")
    item = prompt(session, "second", delivery)
    assert item.state == "queued"
    assert session.projection.session.queue == ["second"]
    assert len(session.store.inputs["second"].parts) == 1
    assert session.projection.session.message_count == 1


def test_reject_refuses_while_a_turn_runs() -> None:
    """And leaves no trace."""
    session = PureSession()
    prompt(session, "first")
    before = snapshot(session)
    with pytest.raises(Refused) as refused:
        prompt(session, "second", "reject")
    assert refused.value.details == {"reason": "turn_running"}
    assert snapshot(session) == before
    assert "second" not in session.store.inputs


def test_interrupt_stops_and_starts_in_one_change_ahead_of_the_queue() -> None:
    """The waiting input goes on waiting; what was said stays."""
    session = PureSession()
    prompt(session, "first")
    old = running(session)
    answer(session, streaming_text("half"))
    prompt(session, "waits")
    version = session.versions.published
    item = prompt(session, "now", "interrupt")
    assert session.versions.published == version + 1
    assert item.state == "started"
    assert running(session).turn_id == item.turn_id != old.turn_id
    assert session.store.turns[old.turn_id].state == "stopped"
    assert session.projection.session.queue == ["waits"]
    half, mine = session.messages()[1:]
    assert (half.state, mine.message_id) == ("done", "now")
    assert half.parts == [structs.replace(half.parts[0], state="done")]


def test_a_full_queue_refuses_and_a_place_that_gets_free_takes() -> None:
    """The limit counts those that wait."""
    session = PureSession(limits=Limits(queue=2))
    for name in ("runs", "a", "b"):
        prompt(session, name)
    before = snapshot(session)
    for delivery in ("auto", "queue"):
        with pytest.raises(Refused) as refused:
            prompt(session, "c", delivery)
        assert refused.value.details == {"reason": "queue_full"}
    assert snapshot(session) == before
    end(session)
    assert prompt(session, "c").state == "queued"


def test_an_interrupt_needs_no_place_in_the_queue() -> None:
    """It starts at once."""
    session = PureSession(limits=Limits(queue=1))
    for name in ("runs", "waits"):
        prompt(session, name)
    assert prompt(session, "now", "interrupt").state == "started"


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_an_archived_session_takes_no_input(delivery: Delivery) -> None:
    """Whatever its delivery."""
    session = PureSession()
    draft = session.draft()
    draft.session = structs.replace(draft.session, archived_at=NOW)
    session.commit(draft)
    with pytest.raises(Refused) as refused:
        prompt(session, "m", delivery)
    assert refused.value.details == {"reason": "archived"}


@pytest.mark.parametrize("busy", [False, True])
def test_what_could_not_be_a_message_is_not_accepted(busy: bool) -> None:  # noqa: FBT001  # a parameter
    """Neither to start nor to wait: an accepted input must never fail to start."""
    limits = Limits(parts=3, part_bytes=300, message_bytes=400)
    session = PureSession(limits=limits)
    if busy:
        prompt(session, "runs")
    before = snapshot(session)
    cases: list[tuple[type[Exception], list[UserPart]]] = [
        (LimitExceeded, [TextPart(text="x" * 300)]),
        (LimitExceeded, [TextPart(text="x" * 200), TextPart(text="x" * 200)]),
        (LimitExceeded, [TextPart(text="x")] * 4),
        (InvalidRequest, [TextPart(text="x", state="done")]),
    ]
    for kind, parts in cases:
        with pytest.raises(kind):
            prompt(session, "m", parts=parts)
        assert snapshot(session) == before


def test_an_accepted_input_starts_though_limits_are_lower_now() -> None:
    """They hold what is sent, not what was taken."""
    session = PureSession()
    prompt(session, "runs")
    prompt(session, "waits", parts=[TextPart(text="x" * 500)])
    again = PureSession(session.store, limits=Limits(part_bytes=100))
    end(again)
    assert again.projection.session.queue == []
    assert again.message(2).message_id == "waits"


# Absorbing


def test_waiting_input_is_absorbed_below_what_was_said() -> None:
    """One change: the agent's message is closed, the users' are written; what comes next is a new message."""
    session = PureSession()
    prompt(session, "first")
    turn = running(session)
    first = answer(session, streaming_text("so far"))
    for name, delivery in (("a", "auto"), ("later", "queue"), ("b", "auto")):
        prompt(session, name, "queue" if delivery == "queue" else "auto")
    version = session.versions.published
    draft = session.draft()
    sequences = turns.absorb(draft, turn)
    session.commit(draft)
    assert session.versions.published == version + 1
    assert [session.message(number).message_id for number in sequences] == ["a", "b"]
    assert {session.message(number).turn_id for number in sequences} == {turn.turn_id}
    assert session.message(first).state == "done"
    assert not any(is_open(part) for part in session.message(first).parts)
    assert session.projection.session.queue == ["later"]
    assert running(session) == turn
    states = {name: item.state for name, item in session.store.inputs.items()}
    assert states == {"first": "started", "a": "absorbed", "b": "absorbed", "later": "queued"}
    assert answer(session, streaming_text()) == sequences[-1] + 1


def test_absorbing_nothing_changes_nothing() -> None:
    """The agent's message goes on where nobody said anything."""
    session = PureSession()
    prompt(session, "first")
    answer(session, streaming_text())
    prompt(session, "later", "queue")
    draft = session.draft()
    assert turns.absorb(draft, running(session)) == []
    assert draft.is_empty()


def test_an_open_tool_outlives_the_message_that_absorption_closes() -> None:
    """Only text ends; the tool's message stays open for its outcome."""
    session = PureSession()
    prompt(session, "first")
    tool = ToolPart(tool_call_id="c", tool_name="t", state="running", input=1)
    message = answer(session, tool)
    prompt(session, "a")
    draft = session.draft()
    turns.absorb(draft, running(session))
    session.commit(draft)
    kept = session.message(message)
    assert (kept.state, is_open(kept.parts[0])) == ("done", True)
    end(session, "stopped")
    ended = session.message(message).parts[0]
    assert isinstance(ended, ToolPart)
    assert (ended.state, ended.error) == ("failed", "turn_stopped")


def test_an_internal_message_closes_the_agents() -> None:
    """It is hidden, belongs to the turn, and stands in order."""
    session = PureSession()
    prompt(session, "first")
    message = answer(session, streaming_text("x"))
    draft = session.draft()
    sequence = turns.write_internal(draft, running(session), [TextPart(text="hint")])
    session.commit(draft)
    hidden = session.message(sequence)
    assert (hidden.role, hidden.visibility, hidden.turn_id) == ("user", "internal", running(session).turn_id)
    assert session.message(message).state == "done"
    assert answer(session, streaming_text()) == sequence + 1


# Cancelling, repeating


def test_a_cancelled_input_leaves_the_queue_and_its_parts() -> None:
    """It becomes no message, and its id stays known."""
    session = PureSession()
    prompt(session, "first")
    item = prompt(session, "second")
    draft = session.draft()
    cancelled = turns.cancel_input(draft, item)
    session.commit(draft)
    assert (cancelled.state, cancelled.parts, cancelled.turn_id) == ("cancelled", [], None)
    assert session.projection.session.queue == []
    assert session.store.inputs["second"] == cancelled
    end(session)
    assert session.projection.session.message_count == 1


def test_an_input_says_where_it_is() -> None:
    """Its place counts from 1, and only while it waits."""
    queue = [new_input("a"), new_input("b")]
    waiting = turns.prompt_result(queue[1], queue)
    assert (waiting.state, waiting.position, waiting.turn_id) == ("queued", 2, UNSET)
    started = turns.prompt_result(structs.replace(queue[0], state="started", turn_id="t"), [])
    assert (started.state, started.position, started.turn_id) == ("started", UNSET, "t")


def test_an_id_stands_for_one_content() -> None:
    """A repeat passes; other content and another message's id do not."""
    item = new_input("m")
    turns.check_repeated(None, "hash", "m", taken=False)
    turns.check_repeated(item, item.content_hash, "m", taken=True)
    turns.check_repeated(item, item.content_hash, "m", taken=False)
    for known, taken in ((item, True), (item, False), (None, True)):
        with pytest.raises(IdempotencyConflict) as refused:
            turns.check_repeated(known, "another", "m", taken=taken)
        assert refused.value.details == {"field": "message_id", "id": "m"}
