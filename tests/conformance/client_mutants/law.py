"""Mutants of the merge law: which frame is the next, windows and pages (SPEC 4.4)."""

from tests.conformance.client_mutants.entities import ENTITIES
from tests.conformance.client_mutants.mutant import Edit, Mutant

MERGE = "midstream.protocol.merge"
WINDOW = "midstream.protocol.window"
PAGES = "midstream.protocol.pages"

CONTIGUITY = (
    Mutant(
        "gap_ignored",
        "4.4",
        "applies a frame that leaves versions out",
        "contiguity.change_gap",
        (Edit(MERGE, "return self._gap(since) if since > self.version else None", "return None"),),
    ),
    Mutant(
        "mark_ignored",
        "4.4",
        "does not look at marks",
        "contiguity.mark_gap",
        (
            Edit(
                MERGE,
                "if frame.version <= self.version:",
                "if frame.version <= self.version or isinstance(frame, Mark):",
            ),
        ),
    ),
    Mutant(
        "mark_is_a_gap",
        "4.4",
        "takes a mark of the version that it has for a gap",
        "contiguity.mark_here",
        (
            Edit(
                MERGE,
                "        if frame.version <= self.version:\n",
                "        if isinstance(frame, Mark) and frame.version == self.version:\n"
                "            return self._gap(frame.version)\n"
                "        if frame.version <= self.version:\n",
            ),
        ),
    ),
    Mutant(
        "skip_is_a_gap",
        "4.4",
        "takes a skip of several versions for a gap",
        "contiguity.skip_no_gap",
        (Edit(MERGE, "since = frame.from_version\n", "since = frame.version - 1\n"),),
    ),
    Mutant(
        "skip_must_begin_here",
        "4.4",
        "takes a skip that begins below its version for a gap",
        "contiguity.skip_no_gap",
        (
            Edit(
                MERGE,
                "since = frame.from_version\n",
                "since = frame.version if frame.from_version < self.version else frame.from_version\n",
            ),
        ),
    ),
    Mutant(
        "old_frames_applied",
        "4.4",
        "goes back to the version of a frame that it had already",
        "contiguity.old_frames",
        (
            Edit(
                MERGE,
                "if frame.version <= self.version:",
                "if frame.version <= self.version and isinstance(frame, Mark):",
            ),
        ),
    ),
    Mutant(
        "sync_gap_ignored",
        "4.4",
        "applies a sync that begins above its version",
        "contiguity.sync_gap",
        (Edit(MERGE, "if since is UNSET or since > self.version:", "if since is UNSET:"),),
    ),
    Mutant(
        "old_sync_applied",
        "4.4",
        "applies a sync whose version it had reached",
        "contiguity.old_sync",
        (Edit(MERGE, "if payload.version <= self.version:", "if payload.version < self.version - 99:"),),
    ),
    Mutant(
        "cursor_past_a_gap",
        "4.4",
        "has the version of the frame that it could not apply in its cursor",
        "contiguity.delta_gap",
        (
            Edit(
                MERGE,
                "    def _gap(self, reached: int) -> Gap:\n",
                "    def _gap(self, reached: int) -> Gap:\n        self.version = reached\n",
            ),
        ),
    ),
    Mutant(
        "durable_too_high",
        "2.7",
        "takes every change for a durable one",
        "contiguity.durable",
        (Edit(MERGE, "        if frame.durable:\n", "        if frame.version:\n"),),
    ),
    Mutant(
        "durable_of_a_sync",
        "2.7",
        "takes the version of a sync for its durable one",
        "syncs.cursor_of_a_sync",
        (
            Edit(
                MERGE,
                "payload.version, payload.committed()\n        self.has_more",
                "payload.version, payload.version\n        self.has_more",
            ),
        ),
    ),
    Mutant(
        "epoch_kept",
        "5.4",
        "does not take the epoch of a sync",
        "syncs.new_epoch",
        (
            Edit(
                MERGE,
                "self.epoch, self.version, self.durable = "
                "payload.epoch, payload.version, payload.committed()\n"
                "        self._pages",
                "self.version, self.durable = payload.version, payload.committed()\n        self._pages",
            ),
        ),
    ),
)

WINDOWS = (
    Mutant(
        "below_the_window",
        "4.4",
        "misses messages that lie below its window",
        "window.below",
        (
            Edit(
                WINDOW,
                "self.first is not None and self.first <= sequence and",
                "self.first is not None and sequence >= 0 and",
            ),
        ),
    ),
    Mutant(
        "window_from_the_first",
        "4.4",
        "takes the messages of a reset for all there are",
        "window.begins",
        (
            Edit(
                MERGE,
                "window.first = lowest if self.has_more else session.first_sequence",
                "window.first = session.first_sequence",
            ),
        ),
    ),
    Mutant(
        "reset_not_emptied",
        "4.4",
        "keeps the messages that it had when a reset comes",
        "window.reset_empties",
        (
            Edit(
                MERGE,
                "        self._window = window\n        self._end_of_history(session)\n",
                "        window.join(self._window)\n        self._window = window\n"
                "        self._end_of_history(session)\n",
            ),
        ),
    ),
    Mutant(
        "turns_survive_a_reset",
        "4.4",
        "keeps the turns that it had when a reset comes",
        "syncs.restored",
        (Edit(MERGE, "self._turns = Turns(payload.turns)", "self._turns.take(payload.turns)"),),
    ),
    Mutant(
        "clear_ignored",
        "10.1",
        "keeps messages that were cleared",
        "window.clear",
        (
            Edit(
                MERGE,
                "dropped = self._window.drop_below(session.first_sequence)",
                "dropped = self._window.drop_below(0)",
            ),
        ),
    ),
    Mutant(
        "page_at_another_version",
        "4.4",
        "merges a page of an earlier version as it is",
        "paging.at_another_version",
        (
            Edit(
                MERGE,
                "frames = [] if page.version == self.version else self._pages.above(page.version)",
                "frames = []",
            ),
        ),
    ),
    Mutant(
        "delta_below_its_message",
        "4.4",
        "applies a delta to a message of a page that has it already",
        "paging.while_it_streams",
        (
            Edit(
                MERGE,
                "frames = [] if page.version == self.version else self._pages.above(page.version)",
                "frames = self._pages.above(self._pages._since)",
            ),
            Edit(WINDOW, "        if version <= head.revision:\n            return None\n", ""),
        ),
    ),
    Mutant(
        "foreign_page",
        "4.4",
        "moves its window by a page of another place",
        "paging.of_another_place",
        (Edit(PAGES, "(None if before is UNSET else before) != window.first or ", ""),),
    ),
    Mutant(
        "page_of_another_view",
        "4.4",
        "merges a page of another epoch or view",
        "paging.of_another_view",
        (
            Edit(
                MERGE,
                "if page.epoch != self.epoch or page.include_internal != self.include_internal:",
                "if not page.epoch:",
            ),
        ),
    ),
)

LAW = (*CONTIGUITY, *ENTITIES, *WINDOWS)
