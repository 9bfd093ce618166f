"""``python -m tests.conformance.restarting PID_FILE DATABASE PORT MUTANT``: kill -9 and start anew."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance.server_process import kill, spawn

if __name__ == "__main__":
    kill(Path(sys.argv[1]))
    spawn(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
