"""How each kind of part ends: lawfully, whatever it holds, and keeping what was streamed."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from msgspec import structs

from midstream.protocol.model import ActionPart, InteractionPart, Part, ReasoningPart, TextPart, ToolPart
from midstream.protocol.parts import check_part
from midstream.protocol.transitions import check_update, is_open
from midstream.server.sessions.endings import ended
from tests import strategies
from tests.server.sessions.pure_session import NOW


@settings(max_examples=300, deadline=None)
@given(
    strategies.agent_texts
    | strategies.reasonings
    | strategies.tools()
    | strategies.interactions()
    | strategies.actions
)
def test_every_open_part_has_a_lawful_end(part: Part) -> None:
    """It is one the tables allow, of a valid form, and final."""
    assume(is_open(part))
    end = ended(part, now=NOW, reason="turn_stopped", why="turn_failed")
    check_update(part, end)
    check_part("agent", end)
    assert not is_open(end)
    match end:
        case TextPart() | ReasoningPart():
            assert end == structs.replace(part, state="done")
        case ToolPart(output=output):
            assert (end.state, end.error) == ("failed", "turn_failed")
            assert isinstance(part, ToolPart)
            assert output == part.output
        case InteractionPart():
            assert (end.status, end.cancel_reason, end.resolved_at) == ("cancelled", "turn_stopped", NOW)
        case ActionPart():
            assert end == structs.replace(part, state="failed")
        case _:
            pytest.fail("this part has no state")


@given(strategies.files | strategies.errors)
def test_a_part_without_a_state_cannot_be_ended(part: Part) -> None:
    """That would be a fault of the caller."""
    with pytest.raises(TypeError, match="no state to end"):
        ended(part, now=NOW, reason="turn_stopped", why="turn_stopped")
