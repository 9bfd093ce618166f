"""Watches all replicas at once: what two of them show at the same version must be the same.

Each applied frame is looked at. Nobody's version or revisions may go back, not even over a `reset`. A version
lies in one epoch, and epochs do not overlap. What has ended (a turn, a tool, an interaction, an action) never
changes again, and nothing of an ended turn comes after its end. And, strongest: for each version the first
replica that shows it sets what every other one must show, by whichever way it came there.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from midstream.protocol.calls import Page
from midstream.protocol.frames import Delta, SessionFrame, ShortDelta, Sync, SyncPayload
from midstream.protocol.merge import Replica, SavedReplica
from midstream.protocol.model import (
    ActionPart,
    InteractionPart,
    Message,
    Part,
    Session,
    ToolPart,
    Turn,
)
from midstream.protocol.outcomes import (
    Appended,
    Applied,
    Gap,
    MessageChanged,
    MessagesDropped,
    Outcome,
    PageOutcome,
    ReplicaChange,
    TurnChanged,
)
from midstream.protocol.transitions import is_open
from tests.simulation.diary import Diary
from tests.simulation.host import HOST

DELTAS_COMPARED = 4
"""Of the versions that are deltas, one in so many is compared between replicas: looking costs more than
applying."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a replica shows at one version."""

    who: str
    epoch: str
    first: int
    internal: bool
    session: Session
    turns: dict[str, Turn]
    messages: dict[int, Message]


class Eye(Protocol):
    """Who is told what a replica did.

    Attributes:
        met: counts what came.
    """

    met: Counter[str]

    def saw(self, replica: "WatchedReplica", outcome: Outcome, *, closely: bool) -> None:
        """Learn what came of a frame; `closely` asks for a comparison with the others."""
        ...


class WatchedReplica(Replica):
    """A replica whose every step is shown to a witness.

    Attributes:
        who: the host that holds it.
        reached: the highest version it has shown.
        revisions: the revision of each message that it has shown.
        witness: who watches it; `Witness.watch` sets it.
    """

    witness: Eye

    def __init__(self, session_id: str, *, include_internal: bool = False) -> None:
        super().__init__(session_id, include_internal=include_internal)
        self.who = HOST.get().name
        self.reached = 0
        self.revisions: dict[str, int] = {}

    def apply(self, frame: SessionFrame) -> Outcome:
        """Apply a frame, watched."""
        outcome = super().apply(frame)
        if not isinstance(frame, Sync):  # which went through apply_sync
            closely = not isinstance(frame, (Delta, ShortDelta)) or frame.version % DELTAS_COMPARED == 0
            self.witness.saw(self, outcome, closely=closely)
        return outcome

    def apply_sync(self, payload: SyncPayload) -> Outcome:
        """Apply a sync, watched."""
        outcome = super().apply_sync(payload)
        self.witness.met[payload.mode + (" in a stream" if _streams(payload) else "")] += 1
        self.witness.saw(self, outcome, closely=True)
        return outcome

    def merge_page(self, page: Page) -> PageOutcome:
        """Merge a page, watched."""
        outcome = super().merge_page(page)
        if outcome is PageOutcome.MERGED:
            self.witness.saw(self, Applied(), closely=True)
        return outcome


class Witness:
    """What everybody has seen.

    Attributes:
        highest: by session, the highest version that anybody has seen.
        met: how often each mode of a sync came, also in the middle of a stream, and how many gaps.
        replicas: by host and session, the replica that was made last.
        ambushes: what is to happen when so many more deltas were seen.
    """

    def __init__(self, diary: Diary) -> None:
        self.highest: dict[str, int] = {}
        self.met = Counter[str]()
        self.replicas: dict[tuple[str, str], WatchedReplica] = {}
        self.ambushes: list[tuple[int, Callable[[], None]]] = []
        self._diary = diary
        self._shown: dict[tuple[str, int], Shown] = {}
        self._epochs: dict[tuple[str, str], tuple[int, int]] = {}
        self._ended_turns: dict[str, Turn] = {}
        self._ended_parts: dict[tuple[str, str], Part] = {}

    def replica(self, session_id: str, *, include_internal: bool = False) -> WatchedReplica:
        """Return a new replica that this witness watches; it belongs to the host that asks."""
        return self._watch(WatchedReplica(session_id, include_internal=include_internal))

    def restored(self, saved: SavedReplica) -> WatchedReplica:
        """Return a replica that was saved, watched again."""
        replica = WatchedReplica.restore(saved)
        if not isinstance(replica, WatchedReplica):
            raise TypeError(f"restore made a {type(replica).__name__}, which cannot be watched")
        replica.reached = saved.cursor.version
        return self._watch(replica)

    def saw(self, replica: WatchedReplica, outcome: Outcome, *, closely: bool) -> None:
        """Look at what a replica shows after a frame."""
        if self._diary.traced:
            self._diary.note(replica.who, f"{replica.session_id} v{replica.version}: {outcome}")
        if isinstance(outcome, Gap):
            self.met["gap" if outcome.keep_cursor else "restart"] += 1
        if not isinstance(outcome, Applied):
            return
        if self.ambushes and any(isinstance(change, Appended) for change in outcome.changes):
            self._spring()
        self._versions(replica)
        if any(isinstance(change, TurnChanged) for change in outcome.changes):
            self._turns(replica)
        for message in self._changed(replica, outcome.changes, closely=closely):
            self._message(replica, message)
        if closely:
            self._compare(replica)

    def ended(self, turn_id: str) -> Turn | None:
        """Return a turn as somebody saw it ended."""
        return self._ended_turns.get(turn_id)

    def _spring(self) -> None:
        """Count a delta, and begin what was to happen at it."""
        counted = [(deltas - 1, happen) for deltas, happen in self.ambushes]
        self.ambushes = [(deltas, happen) for deltas, happen in counted if deltas > 0]
        for deltas, happen in counted:
            if deltas <= 0:
                happen()

    def _watch(self, replica: WatchedReplica) -> WatchedReplica:
        replica.witness = self
        self.replicas[replica.who, replica.session_id] = replica
        return replica

    def _versions(self, replica: WatchedReplica) -> None:
        session_id, version = replica.session_id, replica.version
        if version < replica.reached:
            self._complain(replica, f"went back from version {replica.reached} to {version}")
        replica.reached = version
        self.highest[session_id] = max(self.highest.get(session_id, 0), version)
        key = (session_id, str(replica.epoch))
        low, high = self._epochs.get(key, (version, version))
        if low <= version <= high:
            self._epochs.setdefault(key, (low, high))
            return
        low, high = min(low, version), max(high, version)
        self._epochs[key] = (low, high)
        for (other, epoch), (first, last) in self._epochs.items():
            if other == session_id and epoch != replica.epoch and first <= high and low <= last:
                self._complain(
                    replica, f"epochs {epoch} ({first}-{last}) and {replica.epoch} ({low}-{high}) overlap"
                )

    def _turns(self, replica: WatchedReplica) -> None:
        for turn in replica.turns.values():
            if turn.state == "running":
                end = self._ended_turns.get(turn.turn_id)
                if end is not None and end.revision <= replica.version:
                    self._complain(replica, f"shows {turn} running, which ended as {end}")
            elif self._ended_turns.setdefault(turn.turn_id, turn) != turn:
                self._complain(replica, f"shows two ends of {turn.turn_id}")

    def _changed(
        self, replica: WatchedReplica, changes: tuple[ReplicaChange, ...], *, closely: bool
    ) -> list[Message]:
        found: dict[str, Message] = {}
        for change in changes:
            if isinstance(change, MessageChanged) or (isinstance(change, Appended) and closely):
                message = replica.message(change.message_id)
                if message is not None:
                    found[message.message_id] = message
            elif not isinstance(change, (Appended, MessagesDropped, TurnChanged)):
                return replica.messages()  # a reset, or a change of the session, which comes seldom
        return list(found.values())

    def _message(self, replica: WatchedReplica, message: Message) -> None:
        known = replica.revisions.get(message.message_id, 0)
        if message.revision < known:
            self._complain(
                replica, f"{message.message_id} went back from revision {known} to {message.revision}"
            )
        replica.revisions[message.message_id] = message.revision
        turn = self._ended_turns.get(message.turn_id or "")
        if turn is not None and message.revision > turn.revision:
            self._complain(
                replica, f"{message.message_id} has revision {message.revision}, after the end of {turn}"
            )
        for part in message.parts:
            if isinstance(part, (ToolPart, InteractionPart, ActionPart)) and not is_open(part):
                known_part = self._ended_parts.setdefault((replica.session_id, part.part_id), part)
                if known_part != part:
                    self._complain(replica, f"shows two ends: {known_part} and {part}")

    def _compare(self, replica: WatchedReplica) -> None:
        session, first = replica.session, replica.from_sequence
        if session is None or first is None:
            return
        key = (replica.session_id, replica.version)
        shown = Shown(
            who=replica.who,
            epoch=str(replica.epoch),
            first=first,
            internal=replica.include_internal,
            session=session,
            turns=dict(replica.turns),
            messages={message.sequence: message for message in replica.messages()},
        )
        other = self._shown.get(key)
        if other is None:
            self._shown[key] = shown
            return
        for problem in _differences(shown, other):
            self._complain(replica, f"differs from {other.who} at version {replica.version}: {problem}")
        if (shown.internal, -shown.first) > (other.internal, -other.first):
            self._shown[key] = shown

    def _complain(self, replica: WatchedReplica, what: str) -> None:
        self._diary.complain(f"{replica.who}'s {replica.session_id}: {what}")


def _streams(payload: SyncPayload) -> bool:
    """Say whether a sync carries text that may grow."""
    return any(
        entry.appends or any(getattr(part, "state", None) == "streaming" for part in entry.parts)
        for entry in payload.messages
    )


def _differences(one: Shown, other: Shown) -> list[str]:
    problems: list[str] = []
    if one.epoch != other.epoch:
        problems.append(f"epoch {one.epoch}, not {other.epoch}")
    if one.session != other.session:
        problems.append(f"{one.session}, not {other.session}")
    problems += [
        f"{turn}, not {other.turns[turn_id]}"
        for turn_id, turn in one.turns.items()
        if turn_id in other.turns and other.turns[turn_id] != turn
    ]
    first = max(one.first, other.first)
    internal = one.internal and other.internal
    mine, theirs = _seen(one, first, internal=internal), _seen(other, first, internal=internal)
    if mine != theirs:
        problems += [
            f"message {sequence} is {mine.get(sequence)}, not {theirs.get(sequence)}"
            for sequence in sorted(mine.keys() | theirs.keys())
            if mine.get(sequence) != theirs.get(sequence)
        ]
    return problems


def _seen(shown: Shown, first: int, *, internal: bool) -> dict[int, Message]:
    return {
        sequence: message
        for sequence, message in shown.messages.items()
        if sequence >= first and (internal or message.visibility == "visible")
    }
