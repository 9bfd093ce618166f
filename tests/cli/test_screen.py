"""The plain screen writes pieces so that each begins where it should."""

import io

from midstream.cli.pieces import Heading, Line, Text
from midstream.cli.screen import PlainScreen


async def test_text_is_written_as_it_comes_and_lines_stand_alone() -> None:
    """A line that breaks into a text begins a new one, and the text goes on after it."""
    out = io.StringIO()
    screen = PlainScreen(out)
    await screen.show([Heading("agent"), Text("p", "text", "Hel", done=False)])
    assert out.getvalue() == "[agent]\nHel"
    await screen.show([Line("tool", "add …"), Text("p", "text", "lo", done=True), Line("good", "done")])
    assert out.getvalue() == "[agent]\nHel\n⚙ add …\nlo\n✓ done\n"


async def test_what_was_thought_is_told_from_what_was_said() -> None:
    """Without colours it needs a word, once for each part."""
    out = io.StringIO()
    await PlainScreen(out).show(
        [
            Text("a", "reasoning", "I ", done=False),
            Text("a", "reasoning", "think", done=True),
            Text("b", "text", "So.\n", done=True),
            Text("c", "text", "", done=True),
        ]
    )
    assert out.getvalue() == "(thinking) I think\nSo.\n"


async def test_the_connection_is_mentioned_when_it_changes() -> None:
    """What the agent does is not: it is seen."""
    out = io.StringIO()
    screen = PlainScreen(out)
    for link, activity in (("live", ""), ("live", "the agent writes"), ("offline", ""), ("live", "")):
        await screen.state(link, activity)
    assert out.getvalue() == "· live\n· offline\n· live\n"
