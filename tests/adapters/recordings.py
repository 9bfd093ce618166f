"""The recorded streams of real providers, which stand beside the repository: one JSON event a line."""

from __future__ import annotations

from pathlib import Path

import pytest

STREAMS = Path(__file__).parents[3] / "shared" / "streams"
REASON = "the recorded streams (../shared/streams) are not here"


def recordings(name: str) -> list[object]:
    """The files of a format, as parameters of a test; one that is skipped where there are none."""
    paths = sorted((STREAMS / name).glob("*.txt"))
    if not paths:
        return [pytest.param(None, marks=pytest.mark.skip(reason=REASON))]
    return [pytest.param(path, id=path.name.split(".")[0]) for path in paths]


def lines_of(path: Path) -> list[str]:
    """The events of a file, each as the JSON that came over the wire."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
