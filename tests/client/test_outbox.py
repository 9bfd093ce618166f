"""Prompts that wait keep their order and their number."""

import pytest

from midstream.client.errors import OutboxFull
from midstream.client.outbox import Outbox
from midstream.protocol.calls import PromptParams
from midstream.protocol.model import TextPart


def prompt(message_id: str) -> PromptParams:
    """Make a prompt."""
    return PromptParams(session_id="s", message_id=message_id, parts=[TextPart(text=message_id)])


def test_prompts_leave_one_by_one_in_their_order() -> None:
    """The next prompt is given out only when the one before has its answer."""
    outbox = Outbox("s")
    for message_id in ("a", "b", "c"):
        outbox.add(prompt(message_id))
    left: list[str] = []
    for _ in range(3):
        taken = outbox.take()
        assert taken is not None
        assert outbox.take() is None
        left.append(taken.message_id)
        outbox.answered()
    assert left == ["a", "b", "c"]
    assert outbox.take() is None


def test_a_full_outbox_refuses_and_keeps_what_it_has() -> None:
    """The prompt above the limit is an error for its sender and changes nothing; an answer makes room."""
    outbox = Outbox("s", limit=2)
    outbox.add(prompt("a"))
    outbox.add(prompt("b"))
    with pytest.raises(OutboxFull, match="outbox_limit") as caught:
        outbox.add(prompt("c"))
    assert caught.value.details == {"id": "s", "limit": 2}
    assert [kept.message_id for kept in (outbox.take(),) if kept] == ["a"]
    outbox.answered()
    outbox.add(prompt("c"))
    assert len(outbox) == 2


def test_only_a_prompt_that_was_not_sent_can_be_withdrawn() -> None:
    """What is on its way may be accepted already, so only the server can cancel it."""
    outbox = Outbox("s")
    outbox.add(prompt("a"))
    outbox.add(prompt("b"))
    outbox.take()
    assert not outbox.withdraw("a")
    assert outbox.withdraw("b")
    assert not outbox.withdraw("b")
    assert "a" in outbox
    assert "b" not in outbox


def test_clearing_returns_everything_in_order() -> None:
    """A closing session learns which prompts it gives up, the one on its way included."""
    outbox = Outbox("s")
    outbox.add(prompt("a"))
    outbox.add(prompt("b"))
    outbox.take()
    assert [given_up.message_id for given_up in outbox.clear()] == ["a", "b"]
    assert len(outbox) == 0
    outbox.add(prompt("c"))
    assert outbox.take() is not None
