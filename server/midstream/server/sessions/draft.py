"""A change in the making: the next state of a session, beside the one that everybody still sees.

A draft is made on the projection, filled by the pure functions of turns and recovery, and finished
under a version. Nothing it does is seen before :meth:`Projection.install`, so a draft that is
refused half-way, or whose commit fails, is simply dropped.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, structs

from midstream.protocol.errors import IllegalTransition, InvalidRequest, LimitExceeded
from midstream.protocol.model import (
    InteractionPart,
    Message,
    Part,
    Role,
    Turn,
    TurnPhase,
    Visibility,
)
from midstream.protocol.parts import check_part
from midstream.protocol.transitions import check_update
from midstream.server.sessions.draft_message import DraftMessage
from midstream.server.sessions.projection import FinishedDraft, FinishedMessage, Place
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from midstream.protocol.limits import Limits
    from midstream.protocol.model import Session, Summary
    from midstream.server.ids import Ids
    from midstream.server.sessions.projection import Projection
    from midstream.server.storage.records import AttachmentRow, InputRow


class Draft:
    """The next state of one session. See the module's text."""

    def __init__(
        self,
        projection: Projection,
        *,
        now: int,
        ids: Ids,
        limits: Limits,
        mark: AttachmentRow | None = None,
    ) -> None:
        """Begin with the state as it is; ``now`` is the server time that the change gets."""
        self.now = now
        self.ids = ids
        self.limits = limits
        self.session: Session = projection.session
        self.turn: Turn | None = projection.turn
        self.queue: list[InputRow] = list(projection.queue)
        self.inputs: dict[str, InputRow] = {}
        self.turns: dict[str, Turn] = {}
        self.messages: dict[int, DraftMessage] = {}
        self.clears = False
        self.mark = mark
        """How far a remote agent's writes are in this draft."""
        self.added: Place | None = None
        """Where an agent's part was added."""
        self.summaries: list[Summary] = []
        self._limited = True
        self._projection = projection
        self._pending = projection.session.pending_interactions

    @contextmanager
    def without_limits(self) -> Generator[None]:
        """Do what must not fail: end what is open, and write input that was accepted."""
        before, self._limited = self._limited, False
        try:
            yield
        finally:
            self._limited = before

    # Messages and parts

    def message(self, sequence: int) -> DraftMessage:
        """Return an open message for change.

        Raises:
            IllegalTransition: nothing of the message can change any more.

        """
        found = self.messages.get(sequence)
        if found is None:
            base = self._projection.open.get(sequence)
            if base is None:
                raise IllegalTransition("message", f"sequence {sequence}", "done", "streaming")
            found = self.messages[sequence] = DraftMessage(structs.replace(base.head, parts=[]), base)
        return found

    def peek(self, sequence: int) -> list[Part]:
        """Return the parts of an open message without taking it up for change."""
        found = self.messages.get(sequence)
        return found.all_parts() if found else self._projection.open[sequence].live.parts()

    def has_unstored(self, sequence: int) -> bool:
        """Say whether something of the message was published and is not stored yet."""
        base = self._projection.open.get(sequence)
        return base is not None and bool(base.dirty)

    def take_unstored(self) -> None:
        """Take up every message of which something was published and is not stored yet."""
        for sequence, message in self._projection.open.items():
            if message.dirty:
                self.message(sequence)

    def message_if(self, sequence: int, turn_id: str | None) -> DraftMessage | None:
        """Return an open message for change, where it is of this turn or none is named."""
        found = self.messages.get(sequence)
        head = found.head if found else self._projection.open[sequence].head
        return self.message(sequence) if turn_id is None or head.turn_id == turn_id else None

    def open_sequences(self) -> list[int]:
        """Return the sequences of the messages that are open, those of this draft included."""
        return sorted({*self._projection.open, *self.messages})

    def whole_message(self, sequence: int, version: int) -> Message:
        """Return a message of this draft as it is under the draft's version."""
        message = self.messages[sequence]
        return structs.replace(message.head, revision=version, updated_at=self.now, parts=message.all_parts())

    def streaming(self) -> int | None:
        """Return the sequence of the agent message that streams."""
        for sequence in self.open_sequences():
            head = (
                self.messages[sequence].head
                if sequence in self.messages
                else self._projection.open[sequence].head
            )
            if head.state == "streaming":
                return sequence
        return None

    def start_message(
        self,
        role: Role,
        *,
        visibility: Visibility = "visible",
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> int:
        """Create a message without parts and return its sequence. An agent's streams at first."""
        sequence = self.session.message_count + 1
        self.session = structs.replace(self.session, message_count=sequence)
        head = Message(
            message_id=message_id or self.ids.new("msg"),
            session_id=self.session.session_id,
            turn_id=turn_id or UNSET,
            sequence=sequence,
            revision=0,
            role=role,
            visibility=visibility,
            created_at=self.now,
            updated_at=self.now,
            state="streaming" if role == "agent" else UNSET,
            parts=[],
        )
        self.messages[sequence] = DraftMessage(head, None)
        return sequence

    def close_message(self, sequence: int) -> None:
        """End an agent message: no part may be appended after it. Its parts stay as they are."""
        message = self.message(sequence)
        message.head = structs.replace(message.head, state="done")

    def add_part(self, sequence: int, part: Part) -> int:
        """Append a part and return its sequence; it gets an id where it has none."""
        message = self.message(sequence)
        if message.count >= self.limits.parts and self._limited:
            raise LimitExceeded("parts", self.limits.parts, message.count + 1)
        message.count += 1
        part_id = part.part_id or self.ids.new("part")
        self._set(message, structs.replace(part, sequence=message.count, part_id=part_id), None)
        return message.count

    def place_of(self, sequence: int, number: int) -> Place:
        """Return the place of a part of a message that this draft has taken up."""
        return Place(sequence, number, self.messages[sequence].part(number).part_id)

    def part_if(self, place: Place) -> Part | None:
        """Return a part, without taking its message up; None where it is gone or its message is done."""
        message = self.messages.get(place.message)
        base = self._projection.open.get(place.message)
        try:
            part = message.part(place.part) if message else base.live.part(place.part) if base else None
        except IndexError:
            return None
        return part if part is not None and part.part_id == place.part_id else None

    def part_at(self, place: Place) -> Part:
        """Return a part for change.

        Raises:
            IllegalTransition: it is gone, or nothing of its message can change any more.

        """
        part = self.part_if(place)
        if part is None:
            raise IllegalTransition("part", place.part_id, "gone", "open")
        return part

    def check_input(self, parts: Iterable[Part]) -> None:
        """Refuse what could not be written as a user's message; leaves the draft as it is.

        Raises:
            InvalidRequest: a part is not one of a user's message.
            LimitExceeded: there are too many, or too large ones.

        """
        trial = Draft(self._projection, now=self.now, ids=self.ids, limits=self.limits)
        sequence = trial.start_message("user")
        for part in parts:
            trial.add_part(sequence, part)

    def put_part(self, sequence: int, part: Part) -> None:
        """Replace a part by its successor.

        Raises:
            IllegalTransition: the state may not follow.
            InvalidRequest: what may not change has changed, or a field is not as the model has it.

        """
        message = self.message(sequence)
        before = message.part(part.sequence)
        check_update(before, part)
        self._set(message, part, before)

    def touch_parts(self, sequence: int) -> None:
        """Give every part of a message the draft's version, whether it changed or not (SPEC 9)."""
        message = self.message(sequence)
        for part in message.all_parts():
            if part.sequence not in message.parts:
                message.set_part(part, rows.encode(part))

    def truncate(self, sequence: int, count: int) -> None:
        """Drop the parts above ``count``."""
        message = self.message(sequence)
        for number in range(count + 1, message.count + 1):
            self._count_pending(message.part(number), None)
        message.truncate(count)

    # Turn, queue, session

    def set_turn(self, turn: Turn) -> None:
        """Take the next state of a turn; an ended one no longer runs."""
        self.turns[turn.turn_id] = turn
        running = turn.state == "running"
        self.turn = turn if running else None
        self.session = structs.replace(self.session, running_turn_id=turn.turn_id if running else UNSET)

    def set_phase(self, phase: TurnPhase) -> None:
        """Move the running turn to a phase, if it is in another. While a person is asked, it waits."""
        phase = "waiting-user" if self._pending else phase
        if self.turn is not None and self.turn.phase != phase:
            self.set_turn(structs.replace(self.turn, phase=phase, phase_since=self.now))

    def set_input(self, item: InputRow) -> None:
        """Take the next state of an input; it is in the queue exactly while it is queued."""
        self.inputs[item.message_id] = item
        others = [queued for queued in self.queue if queued.message_id != item.message_id]
        self.queue = [*others, item] if item.state == "queued" else others

    def clear(self) -> None:
        """Remove every message there is."""
        if self.session.first_sequence <= self.session.message_count:
            first = self.session.message_count + 1
            self.session = structs.replace(self.session, first_sequence=first, summarized_through=0)
            self.clears = True

    # The end

    def is_empty(self) -> bool:
        """Say whether the draft would change nothing that anybody can see."""
        return not (self.messages or self.turns or self.changes_session())

    def makes_message(self) -> bool:
        """Say whether a message is new: then it must be committed before anything of it is seen."""
        return any(message.created_version is None for message in self.messages.values())

    def changes_session(self) -> bool:
        """Say whether the session's own fields change: then it is committed before it is shown (SPEC 2.4)."""
        return self._changed_session(0) is not None

    def finish(self, version: int) -> FinishedDraft:
        """Return the change under its version."""
        turns = {key: structs.replace(turn, revision=version) for key, turn in self.turns.items()}
        self.turns = turns
        return FinishedDraft(
            version=version,
            messages=[
                FinishedMessage(
                    head=structs.replace(message.head, revision=version, updated_at=self.now),
                    parts=message.parts,
                    bodies=message.bodies,
                    part_count=message.count,
                    created_version=message.created_version or version,
                    is_new=message.created_version is None,
                    ended=message.ended(),
                )
                for _, message in sorted(self.messages.items())
            ],
            session=self._changed_session(version),
            turn=turns.get(self.turn.turn_id, self.turn) if self.turn else None,
            turns=list(turns.values()),
            queue=self.queue,
            inputs=list(self.inputs.values()),
            summaries=self.summaries,
        )

    def _changed_session(self, version: int) -> Session | None:
        session = structs.replace(
            self.session,
            queue=[item.message_id for item in self.queue],
            pending_interactions=self._pending,
        )
        if session == self._projection.session:
            return None
        return structs.replace(session, revision=version, updated_at=self.now)

    def _set(self, message: DraftMessage, part: Part, before: Part | None) -> None:
        check_part(message.head.role, part)
        body = rows.encode(part)
        # what is kept is read back from what is stored: no agent can change it later, and no wrong
        # type gets into the store, where it would make the whole session unreadable
        message.set_part(_read_back(body), body)
        self._count_pending(before, part)
        if len(body) > self.limits.part_bytes and self._limited:
            raise LimitExceeded("part_bytes", self.limits.part_bytes, len(body))
        if message.size > self.limits.message_bytes and self._limited:
            raise LimitExceeded("message_bytes", self.limits.message_bytes, message.size)

    def _count_pending(self, before: Part | None, after: Part | None) -> None:
        self._pending += _is_pending(after) - _is_pending(before)


def _read_back(body: bytes) -> Part:
    try:
        return rows.read_part(body)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise InvalidRequest(path.strip(".`"), problem) from error


def _is_pending(part: Part | None) -> int:
    return int(isinstance(part, InteractionPart) and part.status == "pending")
