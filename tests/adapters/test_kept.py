"""A step in memory follows the protocol's rules as a server does, and has nobody to talk to."""

from __future__ import annotations

import pytest

from midstream.adapters.kept import KeptParts
from midstream.protocol.agents import Ask
from midstream.protocol.errors import IllegalTransition, InvalidRequest
from midstream.protocol.model import InteractionRequest


async def test_parts_are_kept_whole_and_in_order() -> None:
    """Texts and arguments as they have grown, whatever grew when."""
    kept = KeptParts()
    async with kept.step() as step:
        async with step.text() as first, step.reasoning() as second:
            for word in ("a", "b"):
                await first.append(word)
                await second.append(word * 2)
        call = await step.tool("f")
        await call.append_input("{}")
        await call.ready({})
        await call.progress(1)
        await call.complete(2)
    text, thought, tool = kept.parts
    assert (getattr(text, "text", ""), getattr(thought, "text", "")) == ("ab", "aabb")
    assert (getattr(tool, "input_text", ""), getattr(tool, "output", None)) == ("{}", 2)
    assert len({part.part_id for part in kept.parts}) == 3


async def test_what_the_protocol_refuses_is_refused() -> None:
    """A move that no table has, and a part that cannot be."""
    kept = KeptParts()
    step = kept.step()
    call = await step.tool("f", input={})
    await call.complete(1)
    with pytest.raises(IllegalTransition):
        await call.run()
    with pytest.raises(InvalidRequest):
        await step.data("", None)
    assert len(kept.parts) == 1


async def test_there_is_nobody_to_ask_and_nothing_to_read() -> None:
    """It says so at once, and does not wait."""
    kept = KeptParts()
    assert kept.is_running()
    assert (await kept.context(None)).messages == []
    question = Ask(
        interaction_id="i", interaction_type="approval", request=InteractionRequest(title="May I?")
    )
    with pytest.raises(NotImplementedError, match="May I"):
        await kept.ask(question)
    with pytest.raises(NotImplementedError, match="'i'"):
        await kept.outcome("i")
