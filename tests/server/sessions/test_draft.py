"""A draft is the next state beside the one that everybody sees: refused or dropped, it leaves no trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import UNSET, structs

from midstream.protocol.errors import IllegalTransition, InvalidRequest
from midstream.protocol.model import (
    DataPart,
    FilePart,
    InteractionPart,
    InteractionRequest,
    TextPart,
    ToolPart,
    Turn,
)
from tests.server.sessions.pure_session import (
    NOW,
    PureSession,
    new_input,
    snapshot,
    streaming_text,
    with_open_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from midstream.protocol.model import Part, TurnPhase
    from midstream.protocol.values import Value
    from midstream.server.sessions.draft import Draft


def question(name: str = "ask", *, pending: bool = True) -> InteractionPart:
    """An approval that waits, or that was cancelled."""
    return InteractionPart(
        interaction_id=name,
        interaction_type="approval",
        status="pending" if pending else "cancelled",
        request=InteractionRequest(title="?"),
        resolved_at=UNSET if pending else NOW,
        cancel_reason=UNSET if pending else "turn_stopped",
    )


# Messages and parts


def test_messages_are_numbered_without_holes_and_counted() -> None:
    """``message_count`` is the highest sequence, whoever wrote."""
    session = PureSession()
    for expected in (1, 3):
        draft = session.draft()
        assert draft.start_message("user") == expected
        assert draft.start_message("agent") == expected + 1
        session.commit(draft)
        assert session.projection.session.message_count == expected + 1


def test_a_new_agent_message_streams_and_a_users_is_complete() -> None:
    """``state`` is there exactly in agent messages; both carry the server's time and the session's id."""
    session = PureSession()
    draft = session.draft()
    mine, theirs = draft.start_message("user", message_id="mine"), draft.start_message("agent", turn_id="t")
    internal = draft.start_message("user", visibility="internal")
    session.commit(draft)
    assert session.message(mine).state is UNSET
    assert session.message(mine).message_id == "mine"
    assert session.message(theirs).state == "streaming"
    assert session.message(theirs).turn_id == "t"
    assert session.message(internal).visibility == "internal"
    for message in session.messages():
        assert (message.created_at, message.updated_at, message.revision) == (draft.now, draft.now, 2)
        assert message.session_id == "s"


def test_parts_are_numbered_and_named_where_they_have_no_name() -> None:
    """A given id is kept, a given sequence is not trusted."""
    session = PureSession()
    draft = session.draft()
    message = draft.start_message("user")
    assert draft.add_part(message, TextPart(text="a", part_id="mine", sequence=9)) == 1
    assert draft.add_part(message, TextPart(text="b")) == 2
    session.commit(draft)
    first, second = session.message(message).parts
    assert (first.part_id, first.sequence, second.sequence) == ("mine", 1, 2)
    assert second.part_id.startswith("part_")


def test_a_part_is_replaced_only_by_its_lawful_successor() -> None:
    """Its type, ids and place stay; its state moves by the table."""
    session, message = with_open_message()
    draft = session.draft()
    number = draft.add_part(message, ToolPart(tool_call_id="c", tool_name="n", state="ready", input=1))
    tool = draft.message(message).part(number)
    assert isinstance(tool, ToolPart)
    with pytest.raises(IllegalTransition, match="'ready' to 'input-streaming'"):
        draft.put_part(message, structs.replace(tool, state="input-streaming"))
    with pytest.raises(InvalidRequest, match="tool_call_id"):
        draft.put_part(message, structs.replace(tool, tool_call_id="other"))
    with pytest.raises(InvalidRequest, match="part_id"):
        draft.put_part(message, structs.replace(tool, part_id="other"))
    with pytest.raises(InvalidRequest, match="type"):
        draft.put_part(message, structs.replace(streaming_text(), part_id=tool.part_id, sequence=number))
    draft.put_part(message, structs.replace(tool, state="completed", output=2))
    with pytest.raises(IllegalTransition):
        draft.put_part(message, structs.replace(tool, state="failed", error="too late"))


def test_a_closed_message_cannot_be_changed() -> None:
    """What is done and has nothing open is not even held."""
    session, message = with_open_message()
    draft = session.draft()
    text = draft.message(message).part(1)
    assert isinstance(text, TextPart)
    draft.put_part(message, structs.replace(text, state="done"))
    draft.close_message(message)
    session.commit(draft)
    with pytest.raises(IllegalTransition, match="message"):
        session.draft().message(message)


def test_a_part_that_does_not_exist_is_an_index_error() -> None:
    """Below, above, and what was dropped."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, FilePart(url="u", media_type="m"))
    draft.truncate(message, 1)
    for number in (0, 2, 3):
        with pytest.raises(IndexError):
            draft.message(message).part(number)


def test_a_draft_sees_its_own_changes_and_nobody_else_does() -> None:
    """``peek`` and ``all_parts`` show parts as the draft has them."""
    session, message = with_open_message()
    before = snapshot(session)
    draft = session.draft()
    assert draft.peek(message) == session.message(message).parts
    text = draft.message(message).part(1)
    assert isinstance(text, TextPart)
    draft.put_part(message, structs.replace(text, state="done"))
    draft.add_part(message, FilePart(url="u", media_type="m"))
    assert [type(part).__name__ for part in draft.peek(message)] == ["TextPart", "FilePart"]
    assert draft.peek(message) == draft.message(message).all_parts()
    assert draft.whole_message(message, 9).parts == draft.peek(message)
    assert snapshot(session) == before


def test_what_an_agent_gives_is_copied() -> None:
    """A map that is changed after it was given changes neither the store nor what clients see."""
    session, message = with_open_message()
    data: dict[str, Value] = {"n": 1}
    draft = session.draft()
    draft.add_part(message, DataPart(data_type="d", data=data))
    session.commit(draft)
    data["n"] = 2
    shown = session.message(message).parts[1]
    assert isinstance(shown, DataPart)
    assert shown.data == {"n": 1}
    assert session.store.stored_message(message).parts[1] == msgspec.Raw(msgspec.msgpack.encode(shown))


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (FilePart(url=None, media_type="m"), "url"),  # type: ignore[arg-type]  # what untyped agents do
        (TextPart(text="x", state="finished"), "state"),  # type: ignore[arg-type]  # wrong on purpose
        (ToolPart(tool_call_id="c", tool_name="n", state="ready", title=5), "title"),  # type: ignore[arg-type]  # wrong on purpose
        (ToolPart(tool_call_id="c", tool_name="n", state="failed", error=None), "error"),  # type: ignore[arg-type]  # wrong on purpose
        (DataPart(data_type="d", data={"x": float("nan")}), "data.x"),
        (DataPart(data_type="d", data={"x": "\ud800"}), "data.x"),
        (DataPart(data_type="d", data=2**53), "data"),
        (DataPart(data_type="d", data=object()), "data"),  # type: ignore[arg-type]  # wrong on purpose
        (DataPart(data_type="", data=1), "data_type"),
        (ToolPart(tool_call_id="c", tool_name="n", state="failed"), "error"),
    ],
)
def test_a_part_that_could_not_be_read_again_is_refused_by_its_field(part: Part, field: str) -> None:
    """One wrong value in the store would make its whole session unreadable."""
    session, message = with_open_message()
    before = snapshot(session)
    with pytest.raises(InvalidRequest) as refused:
        session.draft().add_part(message, part)
    assert refused.value.field == field
    assert snapshot(session) == before


# Counters, queue, turn


def test_pending_interactions_are_counted_through_every_change() -> None:
    """Asked, ended, dropped, and in a message that is new."""
    session, message = with_open_message()
    draft = session.draft()
    draft.add_part(message, question("one"))
    draft.add_part(message, question("two"))
    session.commit(draft)
    assert session.projection.session.pending_interactions == 2
    draft = session.draft()
    draft.put_part(
        message,
        structs.replace(
            question("one", pending=False), part_id=session.message(message).parts[1].part_id, sequence=2
        ),
    )
    session.commit(draft)
    assert session.projection.session.pending_interactions == 1
    draft = session.draft()
    draft.truncate(message, 1)
    draft.add_part(message, question("three"))
    session.commit(draft)
    assert session.projection.session.pending_interactions == 1


def test_the_queue_holds_exactly_the_inputs_that_are_queued() -> None:
    """In the order they came; the session names them."""
    session = PureSession()
    draft = session.draft()
    for name in ("a", "b", "c"):
        draft.set_input(new_input(name))
    draft.set_input(structs.replace(new_input("b"), state="cancelled"))
    session.commit(draft)
    assert session.projection.session.queue == ["a", "c"]
    assert [item.message_id for item in session.projection.queue] == ["a", "c"]
    assert {name: item.state for name, item in session.store.inputs.items()} == {
        "a": "queued",
        "b": "cancelled",
        "c": "queued",
    }


def running(phase: TurnPhase = "starting") -> Turn:
    """A turn that runs."""
    return Turn(turn_id="turn", revision=0, state="running", phase=phase, phase_since=NOW, started_at=NOW)


def test_the_session_names_the_turn_that_runs() -> None:
    """From its start to its end."""
    session = PureSession()
    draft = session.draft()
    draft.set_turn(running())
    session.commit(draft)
    before = session.projection.session
    assert before.running_turn_id == "turn"
    assert session.projection.turn == session.store.turns["turn"]
    draft = session.draft()
    draft.set_turn(structs.replace(running(), state="completed", finished_at=draft.now))
    session.commit(draft)
    assert session.projection.session == structs.replace(
        before, running_turn_id=UNSET, revision=session.versions.published, updated_at=draft.now
    )
    assert session.projection.turn is None
    assert session.store.turns["turn"].revision == session.versions.published


def test_a_phase_changes_only_where_it_is_another() -> None:
    """A draft that says what is so already is empty; a new phase has its own time."""
    session = PureSession()
    draft = session.draft()
    draft.set_turn(running())
    session.commit(draft)
    draft = session.draft()
    draft.set_phase("starting")
    assert draft.is_empty()
    draft.set_phase("streaming")
    assert not draft.is_empty()
    finished = session.show(draft)
    assert finished.turns == [session.projection.turn]
    assert session.projection.turn is not None
    assert (session.projection.turn.phase, session.projection.turn.phase_since) == ("streaming", draft.now)


def test_a_turn_waits_for_its_user_while_anything_is_pending() -> None:
    """Whatever else goes on beside the question."""
    session, message = with_open_message()
    draft = session.draft()
    draft.set_turn(running())
    draft.add_part(message, question())
    draft.set_phase("streaming")
    assert draft.turn is not None
    assert draft.turn.phase == "waiting-user"


def test_a_clear_moves_the_floor_once() -> None:
    """Where there is nothing to clear, nothing changes."""
    session = PureSession()
    draft = session.draft()
    draft.clear()
    assert draft.is_empty()
    assert not draft.clears
    draft.start_message("user")
    draft.clear()
    assert draft.clears
    session.commit(draft)
    assert session.projection.session.first_sequence == 2
    assert session.versions.cleared == session.versions.published


# The end of a draft


CHANGES: dict[str, Callable[[Draft], object]] = {
    "message": lambda draft: draft.start_message("user"),
    "turn": lambda draft: draft.set_turn(running()),
    "input": lambda draft: draft.set_input(new_input()),
    "session": lambda draft: draft.clear(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_draft_is_empty_until_something_changes(name: str) -> None:
    """And finishing an empty one gives nothing to store or to say."""
    session, _ = with_open_message()
    draft = session.draft()
    assert draft.is_empty()
    empty = draft.finish(3)
    assert (empty.messages, empty.session, empty.turns, empty.inputs) == ([], None, [], [])
    CHANGES[name](draft)
    assert not draft.is_empty()


def test_everything_of_a_draft_gets_its_version() -> None:
    """Message, turn and session alike; what it did not touch keeps its own."""
    session, message = with_open_message()
    old = session.projection.session.revision
    draft = session.draft()
    draft.set_turn(running())
    draft.message(message)
    finished = draft.finish(7)
    assert [one.head.revision for one in finished.messages] == [7]
    assert [turn.revision for turn in finished.turns] == [7]
    assert finished.turn == finished.turns[0]
    assert finished.session is not None
    assert (finished.session.revision, finished.session.updated_at) == (7, draft.now)
    assert session.projection.session.revision == old


def test_touched_parts_get_a_new_version_without_a_change() -> None:
    """After a crash every copy of a streaming message must be replaced, whatever it holds."""
    session, message = with_open_message()
    draft = session.draft()
    draft.touch_parts(message)
    finished = session.commit(draft)
    assert list(finished.messages[0].parts) == [1]
    assert session.projection.open[message].part_revisions == [session.versions.published]
