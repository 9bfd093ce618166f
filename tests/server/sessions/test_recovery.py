"""Recovery: one commit ends what an unclean end left open, and replaces what only clients had seen."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from midstream.protocol.limits import Limits
from midstream.protocol.model import ErrorPart, InteractionPart, TextPart, ToolPart
from midstream.protocol.transitions import is_open
from midstream.server.sessions import recovery, turns
from tests.server.sessions.pure_session import PureSession, streaming_text, with_open_message
from tests.server.sessions.pure_turns import OPEN_PARTS, answer, end, prompt, running


def crash(session: PureSession, *, limits: Limits | None = None) -> PureSession:
    """Kill the process and load the session in the next one, without recovery."""
    return PureSession(session.store, ids=session.ids, generation=2, limits=limits or session.limits)


def recover(session: PureSession) -> None:
    """Recover, in one commit."""
    draft = session.draft()
    recovery.recover(draft)
    session.commit(draft)


def interrupted() -> PureSession:
    """A crash in the middle of a turn: parts of every kind, two of them changed since the last commit."""
    session = PureSession()
    prompt(session, "m")
    message = answer(session, *OPEN_PARTS)
    session.say(message, 1, " and more")
    draft = session.draft()
    draft.add_part(message, TextPart(text="never stored", state="done"))
    session.show(draft)
    return session


def test_a_fresh_load_needs_recovery_where_anything_is_open() -> None:
    """A running turn, an open message, or input that waits; nothing else."""
    session = PureSession()
    assert not recovery.needs_recovery(crash(session).projection)
    prompt(session, "m")
    assert recovery.needs_recovery(crash(session).projection)
    answer(session, streaming_text())
    assert recovery.needs_recovery(crash(session).projection)
    end(session)
    assert not recovery.needs_recovery(crash(session).projection)


def test_all_that_was_open_is_closed_as_interrupted_in_one_change() -> None:
    """The turn failed, its message is done, an error says why, and the text that was stored stays."""
    session = interrupted()
    turn, message = running(session), 2
    seen = session.versions.published
    again = crash(session)
    recover(again)
    assert again.versions.published > seen
    assert not recovery.needs_recovery(crash(again).projection)
    failed = again.store.turns[turn.turn_id]
    assert (failed.state, failed.error) == ("failed", recovery.INTERRUPTED)
    assert again.projection.session.running_turn_id is UNSET
    shown = again.message(message)
    assert shown.state == "done"
    assert not any(is_open(part) for part in shown.parts)
    assert len(shown.parts) == len(OPEN_PARTS) + 1
    text, error = shown.parts[0], shown.parts[-1]
    assert isinstance(text, TextPart)
    assert text.text == "half"
    assert isinstance(error, ErrorPart)
    assert (error.scope, error.code, error.recoverable) == ("turn", "runtime_interrupted", True)
    for part in shown.parts:
        if isinstance(part, ToolPart) and part.state == "failed":
            assert part.error == "runtime_interrupted"
        if isinstance(part, InteractionPart):
            assert (part.status, part.cancel_reason) == ("cancelled", "runtime_interrupted")


def test_every_part_of_a_streaming_message_gets_the_new_version() -> None:
    """So that every client's next sync carries it whole, whatever it saw of it."""
    session = interrupted()
    again = crash(session)
    draft = again.draft()
    recovery.recover(draft)
    finished = draft.finish(99_999)
    [message] = finished.messages
    assert sorted(message.parts) == list(range(1, len(OPEN_PARTS) + 2))
    assert message.part_count == len(OPEN_PARTS) + 1


def test_open_parts_of_other_messages_are_closed_too() -> None:
    """Those that a steering input left behind; what was closed there keeps its version."""
    session = PureSession()
    prompt(session, "m")
    behind = answer(session, streaming_text("x"), *OPEN_PARTS[2:5])
    prompt(session, "steer")
    draft = session.draft()
    turns.absorb(draft, running(session))
    session.commit(draft)
    answer(session, streaming_text("y"))
    before = session.store.stored_message(behind).part_revisions
    again = crash(session)
    recover(again)
    assert again.projection.open == {}
    after = again.store.stored_message(behind).part_revisions
    assert after[0] == before[0]
    assert min(after[1:]) == again.versions.published


def test_what_no_running_turn_owns_is_closed_as_well() -> None:
    """Whatever left it open: after a recovery nothing is."""
    session, streaming = with_open_message()
    draft = session.draft()
    alone = draft.start_message("agent", turn_id="gone")
    draft.add_part(alone, OPEN_PARTS[8])
    draft.close_message(alone)
    session.commit(draft)
    again = crash(session, limits=Limits(part_bytes=10, message_bytes=10))
    recover(again)
    assert again.projection.open == {}
    assert [again.message(number).state for number in (streaming, alone)] == ["done", "done"]


def test_waiting_input_starts_the_next_turn() -> None:
    """In the commit of the recovery: nobody need ask for it."""
    session = PureSession()
    for name in ("m", "next", "last"):
        prompt(session, name)
    again = crash(session)
    recover(again)
    assert again.message(3).message_id == "next"
    assert again.message(3).turn_id == running(again).turn_id
    assert again.projection.session.queue == ["last"]


def test_a_turn_without_an_answer_gets_a_message_for_its_error() -> None:
    """The crash came before the agent wrote anything."""
    session = PureSession()
    prompt(session, "m")
    again = crash(session)
    recover(again)
    message = again.message(2)
    assert (message.role, message.state) == ("agent", "done")
    assert [part.code for part in message.parts if isinstance(part, ErrorPart)] == ["runtime_interrupted"]


def test_recovery_is_not_held_to_limits() -> None:
    """They may be lower than those of the run before; a session that cannot be recovered cannot be used."""
    session = interrupted()
    again = crash(session, limits=Limits(parts=1, part_bytes=10, message_bytes=10))
    recover(again)
    assert again.projection.open == {}


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_a_death_during_recovery_changes_nothing(deaths: int) -> None:
    """It is one commit: it happened or it did not, and the next load starts above all versions."""
    session = interrupted()
    seen = session.versions.published
    for _ in range(deaths):
        dying = crash(session)
        draft = dying.draft()
        recovery.recover(draft)
        ledger, _ = dying.versions.next_row()
        assert ledger.version > seen
    again = crash(session)
    recover(again)
    assert again.versions.published > seen
    errors = [part for part in again.message(2).parts if isinstance(part, ErrorPart)]
    assert len(errors) == 1


def test_an_interrupted_turn_leaves_its_queue() -> None:
    """A server that stops ends the turn as a crash would, and starts no other."""
    session = PureSession()
    for name in ("m", "next"):
        prompt(session, name)
    draft = session.draft()
    recovery.interrupt(draft)
    session.commit(draft)
    assert session.projection.turn is None
    assert session.projection.session.queue == ["next"]
    assert recovery.needs_recovery(crash(session).projection)
