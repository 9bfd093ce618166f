"""A typed line is a prompt, a command, or a slash that means nothing, and never something else."""

import pytest

from midstream.cli.typed import HELP, Command, Typed, Unknown, Words, read_line


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("hello there\n", Words("hello there")),
        ("  ", None),
        ("", None),
        ("/stop", Command("stop", "")),
        ("/Cancel  all ", Command("cancel", "all")),
        ("/q", Command("quit", "")),
        ("/?", Command("help", "")),
        ("//etc/hosts", Words("/etc/hosts")),
        ("/stpo", Unknown("stpo")),
        ("/", Unknown("")),
        ("a/b", Words("a/b")),
    ],
)
def test_a_line_means_one_thing(line: str, typed: Typed | None) -> None:
    """A misspelled command is not sent as a prompt."""
    assert read_line(line) == typed


@pytest.mark.parametrize("name", HELP)
def test_every_command_of_the_help_is_understood(name: str) -> None:
    """What the help names can be typed."""
    assert read_line(f"/{name}") == Command(name, "")  # type: ignore[arg-type]  # the keys are the names
