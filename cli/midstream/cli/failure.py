"""How a command of the command line ends badly."""

from __future__ import annotations

FAILED = 1
"""Exit code: it could not be done (the port is taken, the server is not there...)."""
MISUSED = 2
"""Exit code: what was typed cannot be right."""


class CommandFailed(Exception):
    """Ends the command with one clear line instead of a traceback."""

    def __init__(self, text: str, *, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code
