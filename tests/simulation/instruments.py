"""What a simulation puts into the programs to watch them: nothing that changes what they do."""

import logging
import sys
import traceback
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import structlog
from structlog.typing import EventDict, WrappedLogger

from midstream.client import replica
from midstream.server import server
from midstream.server.connections import peer
from midstream.server.connections.outbox import CONTROL_BYTES, Outbox
from midstream.server.sessions import offers
from midstream.server.sessions.registry import Registry
from tests.simulation.diary import Diary
from tests.simulation.leases import WatchedAgents, WatchedRun
from tests.simulation.witness import Witness

ANSWERS_BYTES = 64 * 1024
"""What answers to calls that change something may add to an outbox above its mark: 64 calls of a KiB."""
LOUD = (
    "session_failed",
    "call_failed",
    "connection_failed",
    "answer_failed",
    "attachment_failed",
    "write_failed",
    "frame_refused",
)
"""What the server, or a worker, logs when it meets a fault of its own."""


class WatchedOutbox(Outbox):
    """An outbox that remembers how full it was, beyond what its mark admits.

    Attributes:
        longest: the longest frame that entered.
    """

    longest = 0
    diary: Diary

    def put(self, lane: Any, payload: bytes) -> None:  # noqa: ANN401 - a key
        """Put a frame, and look."""
        super().put(lane, payload)
        self.longest = max(self.longest, len(payload))
        self._look()

    def put_sealed(self, lane: Any, message: bytes) -> None:  # noqa: ANN401 - a key
        """Put a message, and look."""
        super().put_sealed(lane, message)
        self._look()

    def _look(self) -> None:
        # what all together hold is far below the bound for all here, so the mark stays what it is
        mark = self._backlog.mark_bytes
        # at most one long frame enters at the mark, and then short ones up to the mark again
        if self.size > 2 * mark + self.longest + CONTROL_BYTES + ANSWERS_BYTES:
            self.diary.complain(f"an outbox holds {self.size} bytes; its mark is {mark}")


class Instruments:
    """The watches of one schedule, and what they show.

    Attributes:
        registry: the registry of the server that was started last.
        agents: of the same server, those who leave turns to workers, if it does.
        met: counts what became of workers' attachments.
    """

    def __init__(self, diary: Diary, witness: Witness) -> None:
        self.registry: WatchedRegistry | None = None
        self.agents: WatchedAgents | None = None
        self.met = Counter[str]()
        self._diary = diary
        self._witness = witness

    @contextmanager
    def installed(self) -> Generator[None]:
        """Put the watches in, for as long as the schedule runs."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(replica, "Replica", self._witness.replica))
            stack.enter_context(patch.object(server, "Registry", self._make_registry))
            stack.enter_context(patch.object(server, "RemoteAgents", self._make_agents))
            stack.enter_context(patch.object(offers, "RemoteRun", WatchedRun))
            stack.enter_context(patch.object(WatchedRun, "diary", self._diary, create=True))
            stack.enter_context(patch.object(WatchedRun, "met", self.met, create=True))
            stack.enter_context(patch.object(peer, "Outbox", WatchedOutbox))
            stack.enter_context(patch.object(WatchedOutbox, "diary", self._diary, create=True))
            stack.enter_context(self._logs())
            yield

    def _make_registry(self, *args: Any, **options: Any) -> "WatchedRegistry":  # noqa: ANN401 - passed on
        self.registry = WatchedRegistry(*args, **options)
        return self.registry

    def _make_agents(self, **options: Any) -> "WatchedAgents":  # noqa: ANN401 - passed on
        self.agents = WatchedAgents(**options)
        return self.agents

    @contextmanager
    def _logs(self) -> Generator[None]:
        """Keep log lines out of the way, but for those that tell of a fault."""
        before = structlog.get_config()
        structlog.configure(
            processors=[self._hear],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            cache_logger_on_first_use=False,
        )
        listener = Listener(self._diary)
        libraries = [logging.getLogger(name) for name in ("websockets", "midstream.client")]
        for library in libraries:
            library.addHandler(listener)
            library.propagate = False
        try:
            yield
        finally:
            structlog.configure(**before)
            for library in libraries:
                library.removeHandler(listener)
                library.propagate = True

    def _hear(self, _: WrappedLogger, level: str, event: EventDict) -> EventDict:
        text = f"{level} {event}"
        if event.get("event") in LOUD:
            self._diary.complain(f"the server logged {text}\n{_cause()}")
        else:
            self._diary.note("log", text)
        raise structlog.DropEvent


class WatchedRegistry(Registry):
    """A registry that tells what it holds."""

    @property
    def subscribers(self) -> dict[str, int]:
        """How many subscriptions each loaded session has."""
        states = {
            session_id: loop._state  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nothing public counts them
            for session_id, loop in self._loops.items()
        }
        return {
            session_id: len(state.stream.subscribers)
            for session_id, state in states.items()
            if state is not None and state.stream.subscribers
        }

    @property
    def watchers(self) -> int:
        """How many watch the list."""
        return self._services.watch.watchers


class Listener(logging.Handler):
    """Hears what libraries log of faults that nobody raises."""

    def __init__(self, diary: Diary) -> None:
        super().__init__(logging.WARNING)
        self._diary = diary

    def emit(self, record: logging.LogRecord) -> None:
        """Complain of what is no consequence of a bad network."""
        message = record.getMessage()
        if record.name.startswith("midstream") or message.startswith("connection handler failed"):
            self._diary.complain(f"{record.name} logged {message}\n{_cause()}")


def _cause() -> str:
    kind, _, _ = sys.exc_info()
    return traceback.format_exc() if kind is not None else ""
