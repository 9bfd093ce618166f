"""Mutants of the merge law (SPEC 4.4)."""

from tests.conformance.client_mutants.mutant import Edit, Mutant

MERGE = "midstream.protocol.merge"
WINDOW = "midstream.protocol.window"
LIVE = "midstream.protocol.live"
PAGES = "midstream.protocol.pages"
TURNS = "midstream.protocol.turns"

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

ENTITIES = (
    Mutant(
        "lower_revision_accepted",
        "4.4",
        "takes an entry whose revision is below its message's",
        "entities.old_message",
        (
            Edit(
                WINDOW,
                "if live is not None and revision <= live.head.revision:",
                "if live is not None and not revision:",
            ),
        ),
    ),
    Mutant(
        "old_session_taken",
        "4.4",
        "takes a session of a lower revision",
        "entities.old_session",
        (Edit(MERGE, "(self.session is None or session.revision > self.session.revision)", "True"),),
    ),
    Mutant(
        "old_turn_taken",
        "4.4",
        "takes a turn of a lower revision",
        "entities.old_turn",
        (Edit(TURNS, "if held is None or turn.revision > held.revision:", "if held != turn:"),),
    ),
    Mutant(
        "appends_applied_twice",
        "4.4",
        "appends what a replay has to text that has it already",
        "entities.appends_once",
        (
            Edit(
                WINDOW,
                "if (entry.appends or entry.ended) and (since is None or live.head.revision > since):",
                "if (entry.appends or entry.ended) and since is None:",
            ),
        ),
    ),
    Mutant(
        "parts_kept",
        "4.4",
        "keeps the parts above part_count",
        "entities.fewer_parts",
        (Edit(LIVE, "        del self._parts[part_count:]\n", ""),),
    ),
    Mutant(
        "parts_added_to",
        "4.4",
        "keeps text that came for a part when the part comes whole",
        "entities.whole_parts",
        (Edit(LIVE, "            self._tails.pop(part.sequence, None)\n", ""),),
    ),
    Mutant(
        "ends_ignored",
        "3.4",
        "does not look at the ends that a replay tells",
        "syncs.replay",
        (Edit(WINDOW, "    live.end(entry.ended)\n", ""),),
    ),
    Mutant(
        "short_delta_to_the_first",
        "3.9",
        "appends a short delta to the first part",
        "entities.short_delta_place",
        (Edit(WINDOW, "part, updated_at = live.part_count, head", "part, updated_at = 1, head"),),
    ),
    Mutant(
        "step_as_elapsed",
        "3.9",
        "counts the step of a short delta from the message's creation",
        "contiguity.in_order",
        (Edit(WINDOW, "head.updated_at + delta.step", "head.created_at + delta.step"),),
    ),
    Mutant(
        "elapsed_as_step",
        "3.9",
        "adds what a delta names as elapsed to the message's last time",
        "contiguity.in_order",
        (Edit(WINDOW, "head.created_at + delta.elapsed", "head.updated_at + delta.elapsed"),),
    ),
    Mutant(
        "half_a_change",
        "4.4",
        "takes the session of a change whose messages cannot fit",
        "misfits.half_a_change",
        (
            Edit(
                MERGE,
                "        below = self._first_sequence(content.session)\n",
                "        self.session = content.session if content.session is not UNSET else self.session\n"
                "        below = self._first_sequence(content.session)\n",
            ),
        ),
    ),
    Mutant(
        "hole_accepted",
        "4.4",
        "puts a part where a hole is below it",
        "misfits.hole",
        (Edit(LIVE, "if not 1 <= sequence <= length + 1:", "if sequence < 1:"),),
    ),
    Mutant(
        "part_count_above_accepted",
        "4.4",
        "does not notice that parts are missing",
        "misfits.part_count",
        (Edit(LIVE, "if part_count > length else None", "if part_count > length + 99 else None"),),
    ),
    Mutant(
        "unknown_delta_ignored",
        "4.4",
        "drops text for a message that it should have and has not",
        "misfits.unknown_delta",
        (Edit(WINDOW, "                if self.covers(sequence)\n", "                if sequence < 0\n"),),
    ),
    Mutant(
        "another_id_accepted",
        "4.4",
        "merges an entry of another message into the one of its sequence",
        "misfits.another_id",
        (
            Edit(
                WINDOW,
                "if entry.message_id is not UNSET and live.head.message_id != entry.message_id:",
                'if entry.message_id == "":',
            ),
        ),
    ),
    Mutant(
        "text_after_the_end",
        "4.4",
        "appends text to a part that is done",
        "misfits.closed_part",
        (Edit(LIVE, 'return part.state == "streaming"', "return True"),),
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
