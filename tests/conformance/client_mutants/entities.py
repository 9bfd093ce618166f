"""Mutants of how entities merge (SPEC 4.4, rules 5 to 9)."""

from tests.conformance.client_mutants.mutant import Edit, Mutant

MERGE = "midstream.protocol.merge"
WINDOW = "midstream.protocol.window"
LIVE = "midstream.protocol.live"
TURNS = "midstream.protocol.turns"

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
        "delta_to_the_last_message",
        "3.9",
        "appends every delta to the session's last message",
        "entities.short_delta_unseen",
        (
            Edit(
                WINDOW,
                "sequence = last if isinstance(delta, ShortDelta) else delta.message_sequence",
                "sequence = last",
            ),
        ),
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
