"""The check of recorded streams: it passes what is right, and only that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from midstream.adapters import check
from midstream.adapters.events import Event
from midstream.adapters.openai_chat import OpenAIChatReader
from tests.adapters.openai_events import added, call_piece, chunk, done, response, said_text
from tests.adapters.recordings import REASON, STREAMS

TEXT = [chunk(content="Hé"), chunk(content="llo"), chunk("stop", reasoning="no, wait")]


def write(folder: Path, name: str, events: list[dict[str, object]]) -> None:
    """Write a file of a folder for a format."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(event, ensure_ascii=False) for event in events), encoding="utf-8")


@pytest.mark.skipif(not STREAMS.exists(), reason=REASON)
def test_all_recorded_streams_pass() -> None:
    """As the command says it: a table, no unknown event, exit code 0."""
    command = [sys.executable, "-m", "midstream.adapters.check", str(STREAMS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = run.stdout.splitlines()
    assert (run.returncode, run.stderr) == (0, "")
    assert len(rows) == 1 + len(list(STREAMS.glob("*/*.txt")))
    assert rows[0].split() == ["file", "events", "parts", "text", "reasoning", "tools", "unknown", "end"]
    assert {row.split()[6] for row in rows[1:]} == {"0"}


def test_the_table_says_what_became_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts with characters that end a line elsewhere included."""
    write(tmp_path, "openai-chat/a.chunks.txt", [chunk(content="a\u2028b"), *TEXT])
    message: dict[str, object] = {"type": "message", "content": []}
    call: dict[str, object] = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
    events = response(added(message), said_text("ab"), done(message), added(call, 1), done(call, 1))
    write(tmp_path, "openai-responses/b.txt", [*events, {"type": "response.dance"}])
    assert check.main(tmp_path) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["openai-chat/a", "4", "2", "8", "8", "0", "0", "stop"],
        ["openai-responses/b", "8", "2", "2", "0", "1", "1", "tool-calls"],
        ["openai-responses/b:", "unknown:", "response.dance"],
    ]


def test_a_reader_that_loses_a_word_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plain look at the file shares nothing with it."""
    read = OpenAIChatReader.read

    def deaf(reader: OpenAIChatReader, event: object) -> list[Event]:
        return [] if "llo" in str(event) else read(reader, event)

    monkeypatch.setattr(OpenAIChatReader, "read", deaf)
    write(tmp_path, "openai-chat/a.txt", TEXT)
    assert check.main(tmp_path) == 1
    assert "openai-chat/a: the text has 2 characters, the file 5" in capsys.readouterr().out


def test_a_file_that_is_no_json_fails_and_the_others_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was wrong is named."""
    write(tmp_path, "openai-chat/b.txt", [call_piece("{}", id="c", name="f"), chunk("tool_calls")])
    (tmp_path / "openai-chat" / "a.txt").write_text("{")
    assert check.main(tmp_path) == 1
    out = capsys.readouterr().out
    assert "FAILED" in out
    assert "openai-chat/a: JSONDecodeError" in out
    assert "tool-calls" in out


def test_a_folder_without_streams_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing checked is not all well."""
    assert check.main(tmp_path) == 1
    assert "has no streams" in capsys.readouterr().out


def test_the_command_wants_a_folder() -> None:
    """It says how it is used."""
    command = [sys.executable, "-m", "midstream.adapters.check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (1, "usage: python -m midstream.adapters.check FOLDER\n")
