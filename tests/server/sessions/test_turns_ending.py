"""The end of a turn: all that is open ends with it, and the next input starts in the same change."""

from __future__ import annotations

import pytest
from msgspec import UNSET, structs

from midstream.protocol.limits import Limits
from midstream.protocol.model import ActionPart, ErrorPart, InteractionPart, ToolPart, TurnFailure, TurnState
from midstream.protocol.transitions import is_open
from midstream.server.sessions import turns
from tests.server.sessions.pure_session import PureSession, streaming_text
from tests.server.sessions.pure_turns import OPEN_PARTS, answer, end, prompt, running


@pytest.mark.parametrize(
    ("state", "word"),
    [("completed", "turn_completed"), ("stopped", "turn_stopped"), ("failed", "turn_failed")],
)
def test_a_turns_end_ends_all_that_is_open_in_it(state: TurnState, word: str) -> None:
    """Text stays, tools fail by the word of the end, questions are cancelled, and nothing is left open."""
    session = PureSession()
    prompt(session, "first")
    turn = running(session)
    message = answer(session, *OPEN_PARTS)
    assert session.projection.session.pending_interactions == 1
    failure = TurnFailure(code="broke", message="It broke.") if state == "failed" else None
    version = session.versions.published
    end(session, state, failure)
    assert session.versions.published == version + 1
    ended = session.store.turns[turn.turn_id]
    assert (ended.state, ended.finished_at, ended.error) == (state, session.now, failure or UNSET)
    shown = session.message(message)
    assert shown.state == "done"
    assert not any(is_open(part) for part in shown.parts)
    kept = shown.parts[: len(OPEN_PARTS)]
    assert [part.error for part in kept if isinstance(part, ToolPart)] == [word] * 4 + [UNSET]
    cancelled = kept[7]
    assert isinstance(cancelled, InteractionPart)
    assert (cancelled.status, cancelled.cancel_reason) == ("cancelled", "turn_stopped")
    assert session.projection.session.pending_interactions == 0
    assert session.projection.session.running_turn_id is UNSET
    assert session.projection.open == {}
    errors = [part for part in shown.parts if isinstance(part, ErrorPart)]
    assert [(error.scope, error.code, error.message) for error in errors] == (
        [("turn", "broke", "It broke.")] if failure else []
    )


def test_a_deleted_sessions_questions_say_so() -> None:
    """So do its tools: the word is that of the end."""
    session = PureSession()
    prompt(session, "first")
    message = answer(session, *OPEN_PARTS)
    draft = session.draft()
    turns.end_turn(draft, "stopped", reason="session_disposed", start_next=False)
    session.commit(draft)
    tool, asked = session.message(message).parts[5], session.message(message).parts[7]
    assert isinstance(asked, InteractionPart)
    assert isinstance(tool, ToolPart)
    assert (asked.cancel_reason, tool.error) == ("session_disposed", "session_disposed")


def test_a_failure_without_a_streaming_message_gets_one_of_its_own() -> None:
    """It is done at once, and belongs to the turn."""
    session = PureSession()
    prompt(session, "first")
    turn = running(session)
    end(session, "failed", TurnFailure(code="broke", message="It broke."))
    message = session.message(2)
    assert (message.role, message.state, message.turn_id) == ("agent", "done", turn.turn_id)
    assert [type(part) for part in message.parts] == [ErrorPart]


def test_an_action_without_a_streaming_message_gets_one_that_is_done_and_may_still_end() -> None:
    """And where one streams, it goes there."""
    session = PureSession()
    prompt(session, "first")
    turn = running(session)
    action = ActionPart(action_id="x", action_type="t", state="running", title="doing")
    draft = session.draft()
    assert turns.add_to_turn(draft, turn.turn_id, action) == (2, 1)
    session.commit(draft)
    assert session.message(2).state == "done"
    assert is_open(session.message(2).parts[0])
    answer(session, streaming_text())
    draft = session.draft()
    assert turns.add_to_turn(draft, turn.turn_id, structs.replace(action, action_id="y")) == (3, 2)
    session.commit(draft)
    end(session)
    assert session.projection.open == {}


def test_what_ends_a_turn_starts_the_next_in_the_same_change() -> None:
    """There is no version in which an accepted input is nowhere."""
    session = PureSession()
    prompt(session, "first")
    first = running(session)
    for name in ("second", "third"):
        prompt(session, name, "queue")
    version = session.versions.published
    end(session)
    assert session.versions.published == version + 1
    assert session.projection.session.queue == ["third"]
    assert session.message(2).message_id == "second"
    assert running(session).turn_id == session.message(2).turn_id != first.turn_id
    end(session, "failed", TurnFailure(code="c", message="m"))
    assert session.message(4).message_id == "third"


def test_ending_without_a_turn_changes_nothing() -> None:
    """Not even the queue is looked at."""
    session = PureSession()
    draft = session.draft()
    turns.end_turn(draft, "stopped", reason="turn_stopped")
    assert draft.is_empty()


def test_an_end_never_fails_whatever_the_limits_are_now() -> None:
    """Neither for parts that are too many nor for those that are too large."""
    session = PureSession()
    prompt(session, "first")
    answer(session, streaming_text("x" * 200), streaming_text("y" * 200))
    again = PureSession(session.store, limits=Limits(parts=1, part_bytes=50, message_bytes=50))
    end(again, "failed", TurnFailure(code="c", message="m" * 200))
    assert len(again.message(2).parts) == 3
