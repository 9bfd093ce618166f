"""What a model is told that a tool call came to, in whatever state the call is (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct

if TYPE_CHECKING:
    from midstream.protocol.model import ApprovalResponse, ToolPart
    from midstream.protocol.values import Value

DENIED = "A person denied this call."
ENDINGS = {
    "forked": "The conversation was copied before the call had a result.",
    "runtime_interrupted": "The server was interrupted before the call had a result.",
    "session_disposed": "The conversation was deleted before the call had a result.",
    "step_abandoned": "The answer was given up and begun anew before the call had a result.",
    "turn_completed": "The turn ended before the call had a result.",
    "turn_failed": "The turn failed before the call had a result.",
    "turn_stopped": "A person stopped the turn before the call had a result.",
}
"""What the words mean that a call which never ended has as its error (SPEC 8.4)."""
NOT_RUN = "It was not run: its arguments were not complete."
MAY_HAVE_RUN = "It may have been carried out all the same, or in part."
NO_ARGUMENTS = "The call was cut off before its arguments were complete. It was not run."
NO_RESULT = "The call has no result: the turn ended, or was stopped, before it was run."
NOT_FINISHED = "The call did not finish: the turn ended, or was stopped, while it ran."
SO_FAR = "Its output so far:"
UNREADABLE = "The arguments were no JSON that can be read:"


class Result(Struct, frozen=True):
    """The outcome of a call: the output of one that completed, else the reason why there is none."""

    failed: bool
    output: Value

    @property
    def text(self) -> str:
        """The output as text: itself, or its JSON."""
        return self.output if isinstance(self.output, str) else as_json(self.output)


def as_json(value: Value) -> str:
    """Return the value as JSON text."""
    return msgspec.json.encode(value).decode()


def result_of(part: ToolPart, response: ApprovalResponse | None = None) -> Result:
    """Return what came of a call, of which ``response`` is what a person said who was asked."""
    if part.state == "completed":
        return Result(failed=False, output=None if part.output is UNSET else part.output)
    if response is not None and response.decision == "denied":
        reason = "" if response.reason is UNSET else response.reason.strip()
        return Result(failed=True, output=f"{DENIED} {reason}" if reason else DENIED)
    return Result(failed=True, output="\n".join(_reasons(part)))


def _failure(part: ToolPart) -> list[str]:
    error = "" if part.error is UNSET else part.error
    if error in ENDINGS:
        return [ENDINGS[error], NOT_RUN if part.input is UNSET else MAY_HAVE_RUN]
    unreadable = [] if part.raw_input is UNSET else [UNREADABLE, part.raw_input]
    return [error if error.strip() else "The call failed.", *unreadable]


def _reasons(part: ToolPart) -> list[str]:
    if part.state == "failed":
        reasons = _failure(part)
    elif part.state == "input-streaming":
        reasons = [NO_ARGUMENTS]
    else:
        reasons = [NOT_FINISHED if part.state == "running" else NO_RESULT]
    if part.output is not UNSET:
        reasons += [SO_FAR, part.output if isinstance(part.output, str) else as_json(part.output)]
    return reasons
