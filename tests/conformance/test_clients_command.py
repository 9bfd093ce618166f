"""The command that tries a client: what it prints, writes and returns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PYTHON = [sys.executable, "-m", "tests.conformance.drivers.python_client"]


def conform(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "midstream.cli", "conform", "client", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_client_that_passes_is_reported_as_such(tmp_path: Path) -> None:
    """The exit code is 0, and the reports that were asked for are there."""
    files = {form: tmp_path / form for form in ("json", "junit", "html", "table")}
    wanted = [option for form, path in files.items() for option in ("--report", f"{form}:{path}")]
    done = conform("--only", "listing.older", "--only", "4.8", *wanted, "--", *PYTHON)
    assert done.returncode == 0, done.stderr
    assert "listing.older" in done.stdout
    report = json.loads(files["json"].read_text("utf-8"))
    assert {result["outcome"] for result in report["results"]} == {"passed"}
    assert all("listing.older" in path.read_text("utf-8") for path in files.values())


def test_a_client_that_fails_is_reported_as_such() -> None:
    """The exit code is 1, and the reason is said."""
    done = conform("--only", "wire.hello", "--", sys.executable, "-c", "pass")
    assert done.returncode == 1
    assert "program ended" in done.stdout


def test_a_report_of_no_form_is_refused_before_anything_runs() -> None:
    """The exit code is 2."""
    done = conform("--report", "pdf:x", "--", *PYTHON)
    assert done.returncode == 2
    assert "no report" in done.stderr
