"""What the server has said of entities: two copies of one revision must be equal (SPEC 1.3, G5, G13, G19)."""

from __future__ import annotations

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.frame import Map


class Ledger:
    """Remembers the entities of all connections of a case, and fails where two copies of them disagree."""

    def __init__(self) -> None:
        """Know nothing."""
        self._entities: dict[tuple[str, ...], Map] = {}
        self._messages: dict[tuple[str, int], tuple[str, str, str, int]] = {}
        self._times: dict[str, tuple[int, int]] = {}

    def session(self, session: Map) -> None:
        """Note a copy of a session: compared across epochs, since it is durable only (2.4)."""
        name, revision = session["session_id"], session["revision"]
        self._note("session", (name,), revision, session)
        before = self._times.get(name, (0, 0))
        if revision > before[0]:
            if session["updated_at"] < before[1]:
                raise Failed("G19: a time of the session went back", expected=before[1], seen=session)
            self._times[name] = (revision, session["updated_at"])

    def turn(self, epoch: str, turn: Map) -> None:
        """Note a copy of a turn."""
        self._note("turn", (turn["turn_id"], epoch), turn["revision"], turn)

    def message(self, epoch: str, message: Map) -> None:
        """Note a whole message."""
        session, sequence = message["session_id"], message["sequence"]
        self._note("message", (session, str(sequence), epoch), message["revision"], message)
        identity = (message["message_id"], message["role"], message["visibility"], message["created_at"])
        known = self._messages.setdefault((session, sequence), identity)
        if known != identity:
            raise Failed("what never changes of a message has changed (2.2)", expected=known, seen=identity)

    def _note(self, kind: str, name: tuple[str, ...], revision: int, entity: Map) -> None:
        known = self._entities.setdefault((kind, *name, str(revision)), entity)
        if known != entity:
            raise Failed(
                f"G5: two copies of a {kind} with revision {revision} are not equal",
                expected=known,
                seen=entity,
            )
