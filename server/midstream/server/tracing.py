"""Spans of OpenTelemetry: of calls, turns, steps, loads and batches of writes. Off unless somebody asks.

Only the API is needed (the extra ``tracing``): where the spans go is for the program that sets up a provider.
Ids of sessions and turns stand in attributes, texts never do.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, TypeVar

from midstream.protocol.agents import AbandonStep, BeginStep, EndStep
from midstream.protocol.calls import PARAMS
from midstream.protocol.errors import MidstreamError
from midstream.server.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opentelemetry.trace import Link, Span, Tracer

    from midstream.protocol.agents import Write

T = TypeVar("T")
_NANOSECONDS: Final = 1_000_000_000
OTHER: Final = "other"
"""The method of a call that there is not."""
_SESSION: Final = "midstream.session_id"
_TURN: Final = "midstream.turn_id"


class Tracing:
    """Makes the spans of one server."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        """Make them by a tracer; by that of the provider that the program has set up where none is given.

        Raises:
            ConfigError: the package is not installed.

        """
        try:
            from opentelemetry import trace  # noqa: PLC0415 - an extra
        except ImportError:
            raise ConfigError(
                "tracing", "needs the package opentelemetry-api: pip install 'midstream[tracing]'."
            ) from None
        self._trace = trace
        self._tracer = tracer or trace.get_tracer("midstream")

    def call(self, method: str, answer: Callable[[T], None], links: Sequence[Link]) -> Callable[[T], None]:
        """Begin the span of a call; it ends when what is returned is called in place of ``answer``."""
        # a stranger may call a method whatever he likes
        attributes = {"midstream.method": method if method in PARAMS else OTHER}
        span = self._tracer.start_span("midstream.call", attributes=attributes, links=links)

        def answered(value: T) -> None:
            if isinstance(value, MidstreamError):
                span.set_attribute("midstream.error", value.code)
            span.end()
            answer(value)

        return answered

    def links(self, traceparent: str | None) -> list[Link]:
        """Return a link to the trace of a client, by its header (W3C Trace Context); none for a bad one."""
        if not traceparent:
            return []
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - an extra
            TraceContextTextMapPropagator,
        )

        context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
        found = self._trace.get_current_span(context).get_span_context()
        return [self._trace.Link(found)] if found.is_valid else []

    def load(self, session_id: str) -> AbstractContextManager[Span]:
        """Return the span of a load, to be entered."""
        return self._tracer.start_as_current_span(
            "midstream.load", attributes={_SESSION: session_id}, record_exception=False
        )

    def batch(self, writes: int, seconds: float) -> None:
        """Make the span of a batch of writes that was done just now; called in the writer's thread."""
        ended = time.time_ns()
        begun = ended - round(seconds * _NANOSECONDS)
        attributes = {"midstream.writes": writes}
        self._tracer.start_span("midstream.commit", start_time=begun, attributes=attributes).end(ended)

    def turn(self, session_id: str, turn_id: str) -> TurnTrace:
        """Begin the span of a turn."""
        attributes = {_SESSION: session_id, _TURN: turn_id}
        # a trace of its own: by whom it was prompted is long over when it ends
        root = self._trace.set_span_in_context(self._trace.INVALID_SPAN)
        span = self._tracer.start_span("midstream.turn", context=root, attributes=attributes)

        def step() -> Span:
            context = self._trace.set_span_in_context(span)
            return self._tracer.start_span("midstream.step", context=context, attributes=attributes)

        return TurnTrace(span, step, self._trace.use_span(span))


class TurnTrace:
    """The span of a turn, and those of its steps."""

    def __init__(self, span: Span, step: Callable[[], Span], current: AbstractContextManager[Span]) -> None:
        """Made by :meth:`Tracing.turn`."""
        self.current = current
        """To be entered once: what is started in it, an agent's own spans say, is below the turn's."""
        self._span = span
        self._begin = step
        self._step: Span | None = None

    def wrote(self, write: Write) -> None:
        """Learn what the agent wrote."""
        if isinstance(write, BeginStep):
            self._end_step()
            self._step = self._begin()
        elif isinstance(write, (EndStep, AbandonStep)):
            self._end_step()

    def ended(self, state: str) -> None:
        """End all: the turn is over, or goes on elsewhere (``reload``)."""
        self._end_step()
        self._span.set_attribute("midstream.state", state)
        self._span.end()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.end()
            self._step = None
