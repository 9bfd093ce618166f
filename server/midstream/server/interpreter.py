"""How Python runs a process that is a server, and nothing else."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that wants the interpreter waits for one that keeps it. The writer's thread leaves and
enters it with every statement, while the event loop is busy: at Python's own 5 ms a commit waits ten times as
long as its disk takes."""
_COLLECT: Final = (10_000, 20, 500)
"""Python's own (700, 10, 10) looks through everything alive again and again while sessions grow, and at busy
moments through all that is just being done: two fifths of the event loop's time at 1,000 busy sessions, and
pauses of 180 ms. With these it is a tenth, in shorter pauses. Nearly all garbage goes by reference counts."""


def tune() -> None:
    """Set up the interpreter for a server; for the program that owns the process, when all is imported."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what was imported stays
    gc.set_threshold(*_COLLECT)
