"""What is known of a prompt only grows."""

import pytest
from msgspec import structs

from midstream.client.errors import InputCancelled, NotFound
from midstream.client.turns import Progress
from midstream.protocol.calls import PromptParams, PromptResult
from midstream.protocol.model import TextPart, Turn

TURN = Turn(turn_id="t1", revision=5, state="running", phase="starting", phase_since=1, started_at=1)


@pytest.fixture
def progress() -> Progress:
    """Return what is known of a prompt that was just made."""
    return Progress(PromptParams(session_id="s", message_id="m1", parts=[TextPart(text="hi")]))


def test_an_older_copy_of_the_turn_changes_nothing(progress: Progress) -> None:
    """Copies are compared by revision, whichever way they came."""
    progress.took("t1")
    newer = structs.replace(TURN, revision=7, phase="streaming")
    progress.follow(newer)
    progress.follow(structs.replace(TURN, revision=6))
    progress.follow(structs.replace(newer, phase="starting"))
    assert progress.turn is newer


def test_what_is_over_stays_over(progress: Progress) -> None:
    """Neither a late answer nor a later error changes an end."""
    progress.took("t1")
    ended = structs.replace(TURN, revision=7, state="completed", finished_at=9)
    progress.follow(ended)
    progress.follow(structs.replace(TURN, revision=9))
    progress.fail(NotFound("turn", "t1"))
    progress.took("t2")
    assert (progress.state, progress.turn, progress.error, progress.turn_id) == (
        "completed",
        ended,
        None,
        "t1",
    )


def test_a_cancelled_prompt_is_an_error_for_who_waits(progress: Progress) -> None:
    """There will be no turn, and the prompt leaves the queue for good."""
    progress.learn(PromptResult(state="queued", message_id="m1", position=3))
    assert (progress.state, progress.position, progress.over) == ("queued", 3, False)
    progress.learn(PromptResult(state="cancelled", message_id="m1"))
    assert progress.over
    assert progress.state == "cancelled"
    assert isinstance(progress.error, InputCancelled)


def test_the_first_turn_that_is_named_is_the_one(progress: Progress) -> None:
    """A prompt is taken once."""
    progress.learn(PromptResult(state="absorbed", message_id="m1", turn_id="t1"))
    progress.learn(PromptResult(state="started", message_id="m1", turn_id="t2"))
    assert progress.turn_id == "t1"
