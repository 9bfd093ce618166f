"""What must hold in a database beyond what SQLite itself checks (SPEC 1.3, 2, 9). It only reads."""

from __future__ import annotations

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from midstream.protocol.model import InteractionPart
from midstream.server.storage import rows
from midstream.server.storage.copies import damages

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

_LAWS: Final = {
    "a session's messages are not 1, 2, 3 ... up to its count": """
SELECT session_id FROM sessions AS s WHERE status = 'live' AND (
    SELECT count(*) <> s.message_count - s.first_sequence + 1
        OR coalesce(min(sequence), s.first_sequence) <> s.first_sequence
        OR coalesce(max(sequence), s.message_count) <> s.message_count
    FROM messages AS m WHERE m.session_no = s.session_no AND m.sequence >= s.first_sequence)
""",
    "a session's version is above its ceiling, or its own revision above its version": """
SELECT session_id FROM sessions WHERE status <> 'forking' AND (version > ceiling OR revision > version)
""",
    "a message has a revision above its session's version, or one below its making": """
SELECT session_id || ' message ' || sequence FROM messages AS m JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND (m.revision > s.version OR m.created_version > m.revision)
""",
    "a part has a revision above that of its message": """
SELECT session_id || ' message ' || m.sequence || ' part ' || p.sequence
FROM parts AS p JOIN messages AS m ON m.session_no = p.session_no AND m.sequence = p.message_sequence
JOIN sessions AS s ON s.session_no = p.session_no WHERE status = 'live' AND p.revision > m.revision
""",
    "a message has not as many parts as it says": """
SELECT session_id || ' message ' || m.sequence FROM messages AS m JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND (SELECT count(*) <> m.part_count OR coalesce(max(p.sequence), 0) <> m.part_count
    FROM parts AS p WHERE p.session_no = m.session_no AND p.message_sequence = m.sequence)
""",
    "a part is of no message": """
SELECT session_id || ' message ' || message_sequence FROM parts AS p JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND NOT EXISTS (
    SELECT 1 FROM messages AS m WHERE m.session_no = p.session_no AND m.sequence = p.message_sequence)
""",
    "the turn that runs is not there, or does not run": """
SELECT session_id FROM sessions AS s
WHERE status = 'live' AND running_turn_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM turns AS t
    WHERE t.session_no = s.session_no AND t.turn_id = s.running_turn_id AND is_running)
""",
    "a turn runs that its session does not name": """
SELECT session_id || ' turn ' || turn_id FROM turns AS t JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND is_running AND turn_id IS NOT s.running_turn_id
""",
    "an accepted input is neither waiting, nor cancelled, nor a message": """
SELECT session_id || ' input ' || message_id FROM inputs AS i JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND first_sequence = 1 AND state IN ('started', 'absorbed') AND NOT EXISTS (
    SELECT 1 FROM messages AS m WHERE m.session_no = i.session_no AND m.message_id = i.message_id)
""",
    "an input that waits has no content": """
SELECT session_id || ' input ' || message_id FROM inputs AS i JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND state = 'queued' AND parts IS NULL
""",
    "an epoch ended above where its session stands, or before its last commit": """
SELECT session_id || ' epoch ' || e.epoch FROM epochs AS e JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND (end_version > s.version OR last_commit > end_version OR e.epoch = s.epoch)
""",
    "an interaction is not where it is looked for": """
SELECT session_id || ' interaction ' || interaction_id
FROM interactions AS i JOIN sessions AS s USING (session_no)
WHERE status = 'live' AND message_sequence >= first_sequence AND NOT EXISTS (
    SELECT 1 FROM parts AS p WHERE p.session_no = i.session_no AND p.message_sequence = i.message_sequence
        AND p.sequence = i.part_sequence)
""",
    "no process has ever owned the file": "SELECT 'owner' WHERE NOT EXISTS (SELECT 1 FROM owner)",
}
"""What would be wrong, and the query that finds where."""


class Counts(NamedTuple):
    """What a database holds."""

    sessions: int
    messages: int
    parts: int


def counts(connection: apsw.Connection) -> Counts:
    """Count what a database holds, without sessions that were deleted."""
    live = "IN (SELECT session_no FROM sessions WHERE status = 'live')"
    found = connection.execute(
        f"SELECT (SELECT count(*) FROM sessions WHERE status = 'live'),"
        f" (SELECT count(*) FROM messages WHERE session_no {live}),"
        f" (SELECT count(*) FROM parts WHERE session_no {live})"
    )
    return Counts(*next(iter(found)))


def problems(connection: apsw.Connection) -> Iterator[str]:
    """Yield what is wrong with a database: what SQLite finds, and, where that is nothing, what we do."""
    damaged = damages(connection)
    if damaged:
        yield from damaged
        return
    for law, query in _LAWS.items():
        for (where,) in connection.execute(query):
            yield f"{law}: {where}"
    yield from _unreadable_turns(connection)
    yield from _wrong_parts(connection)


def _unreadable_turns(connection: apsw.Connection) -> Iterator[str]:
    found = connection.execute(
        "SELECT session_id, turn_id, t.revision, body FROM turns AS t JOIN sessions AS s USING (session_no)"
        " WHERE status = 'live'"
    )
    for session_id, turn_id, revision, body in found:
        try:
            turn = rows.read_turn(body)
        except msgspec.DecodeError as error:
            yield f"a turn cannot be read ({error}): {session_id} turn {turn_id}"
        else:
            if (turn.turn_id, turn.revision) != (turn_id, revision):
                yield f"a turn is another one than its row says: {session_id} turn {turn_id}"


def _wrong_parts(connection: apsw.Connection) -> Iterator[str]:
    """Read every part; what waits for somebody is counted."""
    pending: dict[str, int] = {}
    found = connection.execute(
        "SELECT session_id, message_sequence, p.sequence, body FROM parts AS p"
        " JOIN sessions AS s USING (session_no) WHERE status = 'live' AND message_sequence >= first_sequence"
    )
    for session_id, message, sequence, body in found:
        try:
            part = rows.read_part(body)
        except msgspec.DecodeError as error:
            yield f"a part cannot be read ({error}): {session_id} message {message} part {sequence}"
            continue
        if part.sequence != sequence:
            yield f"a part is another one than its row says: {session_id} message {message} part {sequence}"
        if isinstance(part, InteractionPart) and part.status == "pending":
            pending[session_id] = pending.get(session_id, 0) + 1
    said = connection.execute("SELECT session_id, pending_interactions FROM sessions WHERE status = 'live'")
    for session_id, count in said:
        if pending.get(session_id, 0) != count:
            yield (
                f"a session says that {count} interactions are pending, and {pending.get(session_id, 0)} are:"
                f" {session_id}"
            )
