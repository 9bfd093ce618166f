"""What a client shows, held against what the session was at the version that it says it shows (SPEC 1.4)."""

from __future__ import annotations

from midstream.conformance.clients.conversation import Conversation
from midstream.conformance.clients.driver import Shown
from midstream.conformance.outcome import Failed, expect


def check(talk: Conversation, state: Shown) -> None:
    """Hold what a client shows against what the session was at that version.

    Raises:
        Failed: it was never so.

    """
    if state.session is None:
        return  # nothing was synced yet
    then = talk.at(state.version)
    if then is None:
        raise Failed("the client shows a version that nobody was ever shown", seen=state.version)
    if state.epoch is not None:
        expect(f"the epoch of version {state.version}", state.epoch, then.epoch)
    expect(f"the session at version {state.version}", state.session, then.session)
    # a replica holds what lies above the first message that it holds, or everything
    begins = state.digests[0][0] if state.digests else max(then.messages, default=0) + 1
    first = begins if state.has_earlier else 1
    expected = then.digests(first)
    if not state.digests and state.has_earlier:
        expected = []
    expect(
        f"sequence, revision and digest of the messages at version {state.version}", state.digests, expected
    )
    running = {turn.turn_id: turn for turn in state.turns}
    needed = {then.messages[number].turn_id for number, _, _ in state.digests} | {
        then.session.running_turn_id
    }
    for turn in running.values():
        expect(f"turn {turn.turn_id} at version {state.version}", turn, then.turns.get(turn.turn_id))
    missing = [name for name in needed if isinstance(name, str) and name not in running]
    expect(f"turns that messages name and that are missing at version {state.version}", missing, [])
