"""Where the page's files are."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def page_folder() -> Path | None:
    """Return the folder of the built page, which has an ``index.html``; None where it was not built."""
    folder = _HERE / "page"
    return folder if (folder / "index.html").is_file() else None


def unbuilt_folder() -> Path:
    """Return the folder of a page in plain text that says how to get the real one."""
    return _HERE / "unbuilt"
