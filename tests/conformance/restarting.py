"""``python -m tests.conformance.restarting PID_FILE DATABASE PORT MUTANT``: kill -9 and start anew.

With the PID_FILE alone: tell the server to stop in good order.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.conformance.server_process import kill, spawn

if __name__ == "__main__":
    pid_file, rest = Path(sys.argv[1]), sys.argv[2:]
    if rest:
        kill(pid_file)
        spawn(pid_file, Path(rest[0]), int(rest[1]), rest[2])
    else:
        os.kill(int(pid_file.read_text("ascii")), signal.SIGTERM)
