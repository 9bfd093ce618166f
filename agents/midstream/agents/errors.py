"""How a turn ends otherwise than by its agent's return."""

from __future__ import annotations

from midstream.protocol.model import TurnFailure


class TurnEnded(Exception):  # an outcome, not a fault
    """The turn that an agent writes to is not running any more; nothing it writes enters."""


class TurnFailed(Exception):  # what an agent raises to end its turn, in the model's word
    """Raised by an agent: its turn fails with exactly this error part."""

    def __init__(self, code: str, message: str, *, recoverable: bool = False) -> None:
        """Give the code for programs, the text for people, and whether trying again may help."""
        super().__init__(message)
        self.failure = TurnFailure(code=code, message=message.encode(errors="replace").decode())
        self.recoverable = recoverable
