"""The files of a page, read into memory once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from midstream.server.config import ConfigError

MOST_FILES: Final = 1_000
MOST_BYTES: Final = 32 * 1024 * 1024
"""A page has a few hundred kilobytes; a folder with more was named by mistake."""


def read_files(folder: Path) -> dict[str, bytes]:
    """Read every file below the folder, by its path in it; names that begin with a dot are passed over.

    Raises:
        ConfigError: there is no such folder, it cannot be read, or it holds more than a page would.

    """
    files: dict[str, bytes] = {}
    size = 0
    try:
        root = folder.resolve(strict=True)
        for path in root.rglob("*"):
            parts = path.relative_to(root).parts
            # a link may lead out of the folder, to what nobody meant to serve
            if any(part.startswith(".") for part in parts) or not path.resolve().is_relative_to(root):
                continue
            if path.is_file():
                size += path.stat().st_size
                if len(files) >= MOST_FILES or size > MOST_BYTES:
                    raise ConfigError(
                        "page",
                        f"{folder} holds more than {MOST_FILES} files or {MOST_BYTES} bytes. Name the folder "
                        "that the page was built into.",
                    )
                files["/".join(parts)] = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "page",
            f"{folder} cannot be read ({error.strerror}). Name a folder that has a page in it, or off.",
        ) from error
    return files
