"""How much memory a process has of its own."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")


def resident() -> int:
    """Return the bytes of this process's memory that are in use, once there is no garbage in it.

    What it shares with others, or can read again from a file, is not in it (``RssAnon``), nor is what the
    kernel holds for its sockets.
    """
    gc.collect()
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))
