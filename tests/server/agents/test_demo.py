"""The demo agent shows each thing on its word, through a real server."""

from typing import TypeVar

import pytest

from midstream.client.session import Session
from midstream.protocol.model import (
    ActionPart,
    DataPart,
    ErrorPart,
    InteractionPart,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolPart,
    Turn,
)
from midstream.server.agents import demo_agent
from midstream.server.agents.script import STORY
from midstream.server.agents.wishes import NOTES
from tests.server.agents.conftest import Join

P = TypeVar("P", bound=Part)

ORDER: dict[str, str | list[str]] = {"size": "large", "toppings": ["olives", "basil"], "wish": "no cutlery"}


def parts(session: Session, kind: type[P]) -> list[P]:
    """Return all parts of a kind that the agent wrote."""
    written = (part for message in session.messages if message.role == "agent" for part in message.parts)
    return [part for part in written if isinstance(part, kind)]


def said(session: Session) -> str:
    """Return all text of the agent."""
    return "\n".join(part.text for part in parts(session, TextPart))


async def asked(session: Session) -> InteractionPart:
    """Wait until the agent asks."""
    async with session.mutations(limit=1) as mutations:
        while not (open_ := [part for part in parts(session, InteractionPart) if part.status == "pending"]):
            await anext(mutations)
    return open_[0]


async def answered(session: Session, prompt: str) -> Turn:
    """Give a prompt and wait for the end of its turn."""
    return await (await session.prompt(prompt)).finished()


async def test_a_hello_is_answered_and_nothing_is_asked(join: Join) -> None:
    """The first answer tells what can be typed, the second is shorter, and both were thought about."""
    session = await join(demo_agent(speed=0))
    assert (await answered(session, "hello")).state == "completed"
    assert "**delete**" in said(session)
    assert "**question**" in said(session)
    await answered(session, "hello again")
    assert len(parts(session, ReasoningPart)) == 2
    assert len(parts(session, TextPart)[1].text) < len(parts(session, TextPart)[0].text)
    assert parts(session, InteractionPart) == []


async def test_a_tool_counts_what_was_said(join: Join) -> None:
    """Its arguments were streamed, and its output is right."""
    session = await join(demo_agent(speed=0))
    await answered(session, "count my five words")
    (tool,) = parts(session, ToolPart)
    assert (tool.state, tool.input) == ("completed", {"text": "count my five words"})
    assert tool.input_text
    assert tool.output == {"words": 4, "characters": 19, "longest": "count"}
    assert "**4 words**" in said(session)


async def test_dice_are_rolled_by_a_tool(join: Join) -> None:
    """The sum is that of the dice."""
    session = await join(demo_agent(speed=0))
    await answered(session, "roll the dice")
    (tool,) = parts(session, ToolPart)
    assert isinstance(tool.output, dict)
    assert isinstance(tool.output["thrown"], list)
    assert tool.output["sum"] == sum(tool.output["thrown"])  # type: ignore[arg-type]  # two integers


async def test_a_note_is_deleted_only_with_approval(join: Join) -> None:
    """Denied it stays, approved it goes, and then there is nothing to delete."""
    session = await join(demo_agent(speed=0))
    await answered(session, "note buy milk")
    denied = await session.prompt("delete")
    await session.deny((await asked(session)).interaction_id, "I need it")
    await denied.finished()
    assert parts(session, ToolPart)[0].error == "denied: I need it"
    for _ in range(2):
        approved = await session.prompt("delete")
        await session.approve((await asked(session)).interaction_id)
        await approved.finished()
    await answered(session, "delete")
    notes = [part.data for part in parts(session, DataPart) if part.data_type == NOTES]
    assert notes == [["Water the plants", "buy milk"], ["Water the plants"], []]
    assert [tool.state for tool in parts(session, ToolPart)] == ["failed", "completed", "completed"]
    assert "no note left" in said(session)


async def test_an_order_is_taken_by_asking(join: Join) -> None:
    """One choice, several choices and free text come back in the answer."""
    session = await join(demo_agent(speed=0))
    handle = await session.prompt("question")
    await session.answer((await asked(session)).interaction_id, ORDER)
    await handle.finished()
    assert "| large | olives, basil | no cutlery |" in said(session)


async def test_what_is_typed_meanwhile_is_read_between_the_steps(join: Join) -> None:
    """An input that waits while the agent asks joins the same turn, and its wish is done."""
    session = await join(demo_agent(speed=0))
    first = await session.prompt("question")
    question = await asked(session)
    second = await session.prompt("and use a tool")
    assert (await second.accepted()).state == "queued"
    await session.answer(question.interaction_id, ORDER)
    assert (await first.finished()).turn_id == (await second.finished()).turn_id
    assert [message.role for message in session.messages] == ["user", "agent", "user", "agent"]
    assert "You add: *and use a tool*" in said(session)
    assert parts(session, ToolPart)[0].state == "completed"


async def test_a_stop_ends_the_question_too(join: Join) -> None:
    """Nothing of a stopped turn stays open, and the next prompt is answered."""
    session = await join(demo_agent(speed=0))
    handle = await session.prompt("question")
    await asked(session)
    await handle.stop()
    assert (await handle.finished()).state == "stopped"
    assert parts(session, InteractionPart)[0].status == "cancelled"
    assert (await answered(session, "hello")).state == "completed"


async def test_a_long_story_comes_in_steps(join: Join) -> None:
    """Each chapter is a text of its own step, word for word."""
    session = await join(demo_agent(speed=0))
    await answered(session, "long")
    chapters = parts(session, TextPart)
    assert [part.text for part in chapters] == list(STORY)
    assert len({part.step_id for part in chapters}) == len(STORY)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("action", ActionPart), ("source", SourcePart), ("data", DataPart), ("error", ErrorPart)],
)
async def test_each_other_part_is_shown_on_its_word(join: Join, word: str, kind: type[Part]) -> None:
    """The turn completes, and the part has its last state."""
    session = await join(demo_agent(speed=0))
    assert (await answered(session, word)).state == "completed"
    (part,) = parts(session, kind)
    assert getattr(part, "state", "completed") == "completed"


async def test_a_failure_keeps_what_was_said_and_says_why(join: Join) -> None:
    """The turn fails with the agent's own code, in the middle of a sentence."""
    session = await join(demo_agent(speed=0))
    turn = await answered(session, "fail")
    assert turn.state == "failed"
    assert [part.code for part in parts(session, ErrorPart)] == ["demo_failed"]
    assert "This sentence" in said(session)


async def test_help_names_every_wish(join: Join) -> None:
    """What the agent can do is what its help says."""
    session = await join(demo_agent(speed=0))
    await answered(session, "help")
    for word in (
        "tool",
        "dice",
        "question",
        "note",
        "delete",
        "long",
        "action",
        "source",
        "data",
        "error",
        "fail",
    ):
        assert f"**{word}**" in said(session)
