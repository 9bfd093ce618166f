"""The reference names what there is, and nothing else."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from midstream.adapters import Fed
from midstream.client import Client, Session, TurnHandle
from midstream.server import (
    Action,
    Answers,
    Approval,
    Config,
    Step,
    TextStream,
    ToolCall,
    ToolOutcome,
    Turn,
)
from midstream.worker import Worker

REFERENCE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
CLASSES = [
    Turn, Step, TextStream, ToolCall, ToolOutcome, Action, Approval, Answers, Fed, Client, Session,
    TurnHandle, Worker,
]  # fmt: skip


def rows_under(title: str) -> dict[str, list[str]]:
    """Return the words in code of each table row below a heading, by the first one."""
    section = REFERENCE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            first, *others = re.findall(r"`([^`]*)`", line)
            found[first] = others
    return found


def members(kind: type) -> set[str]:
    """Return the public names of a class: methods, properties, and what its constructor sets for readers."""
    named = {name for name in dir(kind) if not name.startswith("_")}
    return named | set(re.findall(r"self\.([a-z]\w*)(?::[^=\n]*)? =", inspect.getsource(kind)))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_class_of_the_reference_has_what_it_says(kind: type) -> None:
    """Every member that the reference names exists."""
    rows = rows_under("What an agent has") | rows_under("What a client has") | rows_under("What a worker has")
    assert rows[kind.__name__]
    assert set(rows[kind.__name__]) <= members(kind)


def test_the_reference_lists_every_setting_and_its_default() -> None:
    """A setting that is added, renamed or given another default is changed in the reference too."""
    rows = rows_under("Settings of a server")
    config = Config()
    assert set(rows) == set(Config.__struct_fields__)
    for name, others in rows.items():
        if name != "limits":
            assert others[0] == str(getattr(config, name)), name
