"""The examples' README: each example is there, and each command names one that the server finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from midstream.server.agents import agent_named
from midstream.server.config import REMOTE

FOLDER = Path(__file__).parents[2] / "examples"
README = (FOLDER / "README.md").read_text()
WORKERS = re.findall(r"midstream worker ws://\S+ (\S+)", README)


def test_every_example_is_in_the_table() -> None:
    """A reader finds each file by what it shows."""
    listed = set(re.findall(r"\]\((\w+\.\w+)\)", README))
    assert listed == {path.name for path in FOLDER.iterdir() if path.suffix in {".py", ".mjs"}}


@pytest.mark.parametrize("spec", sorted({*re.findall(r"--agent (\S+)", README), *WORKERS} - {REMOTE}))
def test_the_server_finds_what_a_command_names(spec: str) -> None:
    """As `midstream serve --agent` and `midstream worker` do."""
    assert callable(agent_named(spec))


def test_every_python_example_has_a_command() -> None:
    """No example is left without a line that runs it."""
    for path in FOLDER.glob("*.py"):
        assert f"--agent examples.{path.stem}:agent" in README
