"""The writer, and how long its batches take."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from midstream.server.storage.batch import Outcome, Work
    from midstream.server.storage.engines import Writer
    from midstream.server.tally import StorageTally


class TimedWriter:
    """A writer that counts its batches; 1 µs each, in the writer's own thread."""

    def __init__(self, writer: Writer, tally: StorageTally) -> None:
        """Take over a writer."""
        self.generation = writer.generation
        self._writer = writer
        self._tally = tally

    def run(self, jobs: Sequence[Work]) -> list[Outcome]:
        """Commit the jobs as one batch."""
        begun = time.perf_counter()
        outcomes = self._writer.run(jobs)
        self._tally.batch(len(jobs), time.perf_counter() - begun)
        return outcomes

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()

    def abandon(self) -> None:
        """Let everything go as a crash does."""
        self._writer.abandon()
