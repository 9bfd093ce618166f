"""What a stream came to, once it has been fed into a step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from midstream.agents import TurnFailed

if TYPE_CHECKING:
    from midstream.adapters.events import FinishReason, StreamError
    from midstream.agents import ToolCall
    from midstream.protocol.values import Value


class Fed:
    """The outcome of one stream: why it ended, and what the agent must do now."""

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.reason: FinishReason | None = None
        """Why the model stopped; None where it never said."""
        self.raw_reason: str | None = None
        """The provider's own word for it."""
        self.calls: list[ToolCall] = []
        """The tool calls that the agent must run now: ``ready``, and not the provider's own."""
        self.invalid_calls: list[ToolCall] = []
        """Tool calls whose arguments were no JSON: they have failed, and the model should be told."""
        self.approvals: list[tuple[ToolCall, str]] = []
        """Calls of the provider's own that wait for a person, each with the provider's id of the request."""
        self.usage: dict[str, Value] | None = None
        """What the last model call used, in the words of :func:`midstream.adapters.reader.usage`."""
        self.refusal: str | None = None
        """What the model said when it declined, where it did."""
        self.error: StreamError | None = None
        """What broke the stream; an error part says it too."""
        self.unknown: Counter[str] = Counter()
        """How often each kind of event was skipped because it is not known."""

    @property
    def wants_results(self) -> bool:
        """Whether the model waits for the outcome of tool calls: the agent should call it again."""
        return bool(self.calls or self.invalid_calls or self.approvals)

    def raise_for_error(self) -> None:
        """Fail the turn where the stream broke.

        Raises:
            TurnFailed: with the stream's own code and text.

        """
        if self.error is not None:
            raise TurnFailed(self.error.code, self.error.message, recoverable=self.error.recoverable)
