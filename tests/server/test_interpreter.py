"""How Python runs a server: set up by the program that owns the process, and by nobody else."""

from __future__ import annotations

import subprocess
import sys

_ASK = (
    "import gc, sys; {before}; print(sys.getswitchinterval(), gc.get_threshold()[0], gc.get_freeze_count())"
)


def _settings(before: str) -> str:
    command = [sys.executable, "-c", _ASK.format(before=before)]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def test_a_tuned_process_collects_less_and_switches_sooner() -> None:
    """And what was there at that time is never looked through again."""
    switch, first, frozen = _settings("from midstream.server import interpreter; interpreter.tune()").split()
    assert (switch, first) == ("0.0005", "10000")
    assert int(frozen) > 0


def test_who_embeds_a_server_keeps_its_own_settings() -> None:
    """To import the server changes nothing for the rest of the program."""
    assert _settings("import midstream.server.server") == _settings("pass")
