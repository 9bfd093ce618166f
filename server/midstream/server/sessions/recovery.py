"""What a load does after an unclean end, in one commit (SPEC 9). Pure.

Clients may have seen more than the store has: text that was streamed after the last commit. So
every part of a message that was streaming gets the new version, whether it changes or not, and
every client's next sync carries it whole: what was only streamed is replaced by what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.protocol.model import TurnFailure
from midstream.server.sessions import turns

if TYPE_CHECKING:
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.projection import Projection

INTERRUPTED = TurnFailure(code="runtime_interrupted", message="The server stopped.")


def needs_recovery(projection: Projection) -> bool:
    """Say whether something is open that nobody works on: on a fresh load, that is all of it."""
    return bool(projection.open or projection.turn or projection.queue)


def interrupt(draft: Draft) -> None:
    """Fail the running turn because its agent is gone; queued input stays queued."""
    turns.end_turn(
        draft, "failed", reason="runtime_interrupted", failure=INTERRUPTED, recoverable=True, start_next=False
    )


def recover(draft: Draft, *, turn_goes_on: bool = False) -> None:
    """End what an unclean end left open, and start the next turn where input waits.

    Where ``turn_goes_on``, with an agent elsewhere, it stands as it was at its last commit, and only
    what readers may have seen more of gets the new version.
    """
    if turn_goes_on and draft.turn is not None:
        for sequence in draft.open_sequences():
            draft.touch_parts(sequence)
        draft.set_turn(draft.turn)
        return
    streaming = draft.streaming()
    if streaming is not None:
        draft.touch_parts(streaming)
    interrupt(draft)
    with draft.without_limits():
        turns.end_open_parts(draft, None, reason="runtime_interrupted", why="runtime_interrupted")
        turns.close_streaming(draft)
    turns.start_waiting(draft)
