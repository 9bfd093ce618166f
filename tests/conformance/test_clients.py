"""Our clients under the conformance kit, and the kit under clients that are broken on purpose."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from midstream.conformance.clients.command import conform_client
from midstream.conformance.clients.scene import Settings
from midstream.conformance.clients.suite import SUITE
from midstream.conformance.outcome import Outcome
from midstream.conformance.report import Report, line
from tests import specification
from tests.conformance.client_mutants.__main__ import MUTANTS
from tests.conformance.client_mutants.table import caught

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, "-m", "tests.conformance.drivers.python_client"]
TYPESCRIPT = ROOT / "clients" / "typescript" / "scripts" / "conformance.mjs"
LAW = ("contiguity", "entities", "misfits", "paging", "syncs", "window", "wire")
"""The cases that are tried in JSON too."""
TRIED = (
    "cursor_past_a_gap",
    "lower_revision_accepted",
    "appends_applied_twice",
    "parts_kept",
    "reset_not_emptied",
    "delta_below_its_message",
    "foreign_page",
    "prompt_with_a_new_id",
    "comes_back_after_4504",
    "pings_not_answered",
    "chunks_mixed",
    "older_in_the_list",
)
"""Mutants that are tried here; `python -m tests.conformance.client_mutants` tries all."""


def problems(report: Report) -> list[str]:
    """Return what did not pass, in words."""
    return [line(result) for result in report.results if result.outcome is not Outcome.PASSED]


async def conform(command: Sequence[str], *, only: Sequence[str] = (), json: bool = False) -> Report:
    """Run cases against a program."""
    settings = Settings(encoding="json" if json else "msgpack", patience=30)
    return await conform_client(command, only=only, settings=settings)


@pytest.mark.parametrize("json", [False, True])
async def test_the_python_client_does_what_spec_asks_of_clients(*, json: bool) -> None:
    """All cases pass; in JSON those that the encoding can touch."""
    assert problems(await conform(PYTHON, only=LAW if json else (), json=json)) == []


@pytest.mark.parametrize("json", [False, True])
async def test_the_typescript_client_does_what_spec_asks_of_clients(*, json: bool) -> None:
    """All cases pass; in JSON those that the encoding can touch."""
    node = shutil.which("node")
    if node is None or not (ROOT / "clients" / "node_modules" / "rolldown").is_dir():
        pytest.skip("it needs node, and `npm ci` in clients")
    command = [node, str(TYPESCRIPT)]
    assert problems(await conform(command, only=LAW if json else (), json=json)) == []


@pytest.mark.parametrize("name", TRIED)
async def test_a_client_that_breaks_a_rule_is_caught(name: str) -> None:
    """The case that tries the rule fails."""
    mutant = MUTANTS[name]
    assert await caught(mutant) == [mutant.caught_by]


def test_each_mutant_names_a_case_and_lines_that_are_there() -> None:
    """So none of them is the true client by mistake."""
    assert {mutant.caught_by for mutant in MUTANTS.values()} <= {case.id for case in SUITE}
    for mutant in MUTANTS.values():
        for edit in mutant.edits:
            path = next(ROOT.glob(f"*/{edit.module.replace('.', '/')}.py"), None) or next(
                ROOT.glob(f"clients/python/{edit.module.replace('.', '/')}.py")
            )
            assert path.read_text("utf-8").count(edit.old) == 1, f"{mutant.name}: {edit.old}"


def test_each_case_names_a_section_and_guarantees_of_spec() -> None:
    """A report must lead to the rule."""
    for case in SUITE:
        assert case.section in specification.sections(), case.id
        assert all(f"| {guarantee} |" in specification.text() for guarantee in case.guarantees), case.id


def test_the_documentation_has_the_table_of_mutants() -> None:
    """It is part of what the kit promises."""
    rows = [row for row in (ROOT / "docs" / "conformance.md").read_text("utf-8").splitlines() if "| `" in row]
    for mutant in MUTANTS.values():
        row = f"| {mutant.breaks} (`{mutant.name}`) | {mutant.section} | `{mutant.caught_by}` |"
        assert row in rows, mutant.name


async def test_a_program_that_ends_at_once_fails_each_case() -> None:
    """A client that is not there has passed nothing."""
    report = await conform([sys.executable, "-c", "pass"], only=["contiguity.in_order", "wire.hello"])
    assert [result.outcome for result in report.results] == [Outcome.FAILED, Outcome.FAILED]


async def test_what_a_program_cannot_do_is_skipped_and_said() -> None:
    """A client without a list of sessions is no worse for it."""
    quiet = 'print(\'{"ready": "nothing"}\', flush=True); input()'
    report = await conform([sys.executable, "-c", quiet], only=["listing"])
    assert {result.outcome for result in report.results} == {Outcome.SKIPPED}
    assert "list" in report.results[0].what
