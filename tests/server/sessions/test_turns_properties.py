"""Any order of input, answers, ends and restarts: no accepted input is ever nowhere, or in two places."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.protocol.errors import Refused
from midstream.protocol.limits import Limits
from midstream.server.sessions import turns
from tests.server.sessions.pure_session import PureSession
from tests.server.sessions.pure_turns import DELIVERIES, OPEN_PARTS, answer, end, prompt, running

calls = st.lists(
    st.tuples(
        st.sampled_from([*DELIVERIES, "answer", "absorb", "complete", "fail", "stop", "cancel", "restart"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(max_examples=200, deadline=None)
@given(calls)
def test_every_accepted_input_has_exactly_one_end(steps: list[tuple[str, int]]) -> None:
    """After every step, each is queued, or one message, or cancelled; and no input waits without a turn."""
    session = PureSession(limits=Limits(queue=3))
    accepted: set[str] = set()
    for number, (what, choice) in enumerate(steps):
        name = f"m{number}"
        if what in DELIVERIES:
            try:
                prompt(session, name, DELIVERIES[DELIVERIES.index(what)])
                accepted.add(name)
            except Refused:
                pass
        elif what == "restart":
            session = PureSession(session.store, ids=session.ids, limits=session.limits)
        elif session.projection.turn is not None:
            carry_out(session, what, choice)
        hold_to_the_law(session, accepted)


def carry_out(session: PureSession, what: str, choice: int) -> None:
    """Do what an agent or a user does while a turn runs."""
    if what == "answer":
        answer(session, OPEN_PARTS[choice])
    elif what == "absorb":
        draft = session.draft()
        if turns.absorb(draft, running(session)):
            session.commit(draft)
    elif what == "cancel" and session.projection.queue:
        draft = session.draft()
        turns.cancel_input(draft, draft.queue[choice % len(draft.queue)])
        session.commit(draft)
    elif what == "complete":
        end(session)
    elif what in {"fail", "stop"}:
        end(session, "failed" if what == "fail" else "stopped")


def hold_to_the_law(session: PureSession, accepted: set[str]) -> None:
    """Each accepted input is in exactly one place, in the store as in what clients see."""
    queued = session.projection.session.queue
    written = [message.message_id for message in session.messages() if message.role == "user"]
    cancelled = [name for name, item in session.store.inputs.items() if item.state == "cancelled"]
    assert sorted([*queued, *written, *cancelled]) == sorted(accepted)
    assert session.projection.turn is not None or not queued
    streaming = [one for one in session.messages() if one.state == "streaming"]
    assert len(streaming) <= (1 if session.projection.turn else 0)
    assert set(session.store.inputs) == accepted
    for name, item in session.store.inputs.items():
        assert (item.state == "queued") == (name in queued)
        assert (item.state in {"started", "absorbed"}) == (name in written)
    assert PureSession(session.store).projection.session == session.projection.session
