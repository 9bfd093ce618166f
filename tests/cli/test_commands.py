"""What is typed wrongly is answered by one line that says what to do, and by an exit code."""

import logging
import sys
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from midstream.cli import main as entry
from midstream.cli.commands import app

COMMANDS = ("serve", "worker", "chat", "tail", "inspect", "demo")


@pytest.fixture(autouse=True)
def own_logs() -> Generator[None]:
    """Give back what `serve` sets up for its process: it would write to the output of a test that is over."""
    root = logging.getLogger()
    handlers, level, configuration = list(root.handlers), root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in an empty folder, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIDSTREAM_PORT", raising=False)
    monkeypatch.delenv("MIDSTREAM_DATABASE", raising=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """By -h as by --help."""
    for flag in ("-h", "--help"):
        result = CliRunner().invoke(app, [command, flag])
        assert result.exit_code == 0
        assert "Usage:" in result.output


def test_the_help_lists_the_commands() -> None:
    """Also where nothing is typed."""
    result = CliRunner().invoke(app, ["--help"])
    assert all(command in result.output for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--port", "99999"], "port: is 99999"),
        (["serve", "--host", "0.0.0.0"], "not a loopback address"),  # noqa: S104 - it is refused
        (["serve", "--agent", "nobody"], "Agent 'nobody' cannot be used"),
        (["serve", "--agent", "replay:nowhere"], "nowhere is no folder"),
        (["serve", "--log-level", "loud"], "log_level: is 'loud'"),
        (["chat", "http://127.0.0.1", "s"], "must begin with ws:// or wss://"),
        (["tail", "127.0.0.1:1", "s"], "must begin with ws:// or wss://"),
        (["inspect", "missing.db"], "There is no file missing.db"),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_line(arguments: list[str], said: str) -> None:
    """The exit code is 2, there is no traceback, and nothing is left behind."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("midstream: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Usage:"),
        (["frobnicate"], "No such command"),
        (["chat", "ws://127.0.0.1:1"], "Missing argument 'SESSION'"),
        (["serve", "--port", "many"], "valid integer"),
        (["serve", "--speed", "-1"], "Invalid value for '--speed'"),
    ],
)
def test_a_command_that_is_incomplete_says_what_is_missing(arguments: list[str], said: str) -> None:
    """The exit code is 2."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_misspelled_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no error, but whoever set it wants to know that it does nothing."""
    monkeypatch.setenv("MIDSTREAM_PROT", "1")
    result = CliRunner().invoke(app, ["serve", "--agent", "nobody"])
    assert "MIDSTREAM_PROT is no setting and is ignored. Is MIDSTREAM_PORT meant?" in result.stderr


def test_the_version_is_told() -> None:
    """As packaged."""
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"midstream {version('midstream')}\n"


def test_flags_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong variable is named where it counts, and does not matter where a flag is given."""
    monkeypatch.setenv("MIDSTREAM_PORT", "many")
    result = CliRunner().invoke(app, ["serve", "--agent", "nobody"])
    assert "MIDSTREAM_PORT: is 'many'" in result.stderr
    result = CliRunner().invoke(app, ["serve", "--agent", "nobody", "--port", "0"])
    assert "Agent 'nobody'" in result.stderr


@pytest.mark.parametrize("missing", ["typer", "rich.console", "prompt_toolkit"])
def test_without_the_extra_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """In one line, whichever of the packages is missing."""
    for name in list(sys.modules):
        if name.startswith("midstream.cli.") and name != "midstream.cli.main":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(sys, "argv", ["midstream", "chat", "ws://127.0.0.1:1", "s"])
    with pytest.raises(SystemExit) as caught:
        entry.main()
    assert "pip install 'midstream[cli]'" in str(caught.value.code)
