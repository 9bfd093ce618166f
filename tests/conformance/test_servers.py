"""Our server under the conformance kit, and the kit under servers that are broken on purpose."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from midstream.cli.commands import app
from midstream.conformance.outcome import Outcome
from midstream.conformance.servers.command import conform_server
from tests.conformance.mutants import MUTANTS
from tests.conformance.mutants.table import caught_by
from tests.conformance.server_process import served

QUICK = (
    "mark-too-high",
    "skip-missing",
    "has-more-wrong",
    "respond-twice",
    "prompt-twice",
    "anybody-attaches",
)
"""Mutants that are tried in every run of the suite; `python -m tests.conformance.mutants` tries all."""


async def test_our_server_passes_every_case(tmp_path: Path) -> None:
    """Every rule holds of a real process, over a kill -9 too; only cases of in-process agents are skipped."""
    async with served(tmp_path) as target:
        report = await conform_server(target, jobs=6)
    bad = [
        (result.id, result.what, result.expected, result.seen)
        for result in report.results
        if not result.is_good
    ]
    assert bad == []
    skipped = {result.id for result in report.results if result.outcome is Outcome.SKIPPED}
    assert skipped == {result.id for result in report.results if result.id.startswith("own-agent.")}


@pytest.mark.parametrize("name", QUICK)
async def test_a_server_with_one_broken_rule_is_caught(name: str, tmp_path: Path) -> None:
    """A rule that a server breaks is noticed by a case that is made for it."""
    assert await caught_by(MUTANTS[name], tmp_path)


def test_there_are_mutants_for_what_the_issue_names() -> None:
    """At least eighteen servers are broken, each in a rule of its own."""
    assert len(MUTANTS) >= 18


async def test_the_command_says_how_it_went_and_writes_reports(tmp_path: Path) -> None:
    """`midstream conform server` ends with 0 where nothing failed, 2 where nothing is there."""
    page, junit = tmp_path / "report.html", tmp_path / "report.xml"
    async with served(tmp_path / "server") as target:
        options = ["--only", "handshake.welcome", "--report", f"html:{page}", "--report", f"junit:{junit}"]
        found = await asyncio.to_thread(CliRunner().invoke, app, ["conform", "server", target.url, *options])
    assert found.exit_code == 0
    assert "1 passed" in found.stdout
    assert "handshake.welcome" in page.read_text("utf-8")
    assert "handshake.welcome" in junit.read_text("utf-8")
    gone = await asyncio.to_thread(CliRunner().invoke, app, ["conform", "server", target.url])
    assert gone.exit_code == 2
