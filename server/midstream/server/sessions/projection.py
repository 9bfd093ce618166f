"""The live state of one session: what its clients see, streamed text included (SPEC 2, 9).

Only what may still change is held: the session, the running turn, the queue, and the open messages.
Everything else is in the store. The projection changes in two ways only: :meth:`Projection.append`
for a delta, and :meth:`Projection.install` for a finished draft.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from midstream.protocol.live import LiveMessage
from midstream.protocol.model import InteractionPart, Message, Part
from midstream.protocol.transitions import is_open
from midstream.server.storage import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from midstream.protocol.model import Session, Summary, Turn
    from midstream.server.sessions.ticks import GrowingPart
    from midstream.server.storage.records import InputRow, LoadedSession


class Place(NamedTuple):
    """Where a part is, and which one it is: when it is dropped, another may come to be in its place."""

    message: int
    """The sequence of its message."""
    part: int
    """Its own."""
    part_id: str


class OpenMessage:
    """A message that may still change, with what the store and a catch-up need to know of its parts."""

    __slots__ = ("created_version", "dirty", "live", "part_revisions", "sizes", "stored_parts")

    def __init__(
        self, message: Message, *, created_version: int, part_revisions: list[int], sizes: list[int]
    ) -> None:
        """Start from a whole message; each part has the version that last changed it, and its bytes."""
        self.live = LiveMessage(message)
        self.created_version = created_version
        self.part_revisions = part_revisions
        self.sizes = sizes
        self.dirty: set[int] = set()
        """Sequences of parts that changed since the last commit."""
        self.stored_parts = len(part_revisions)
        """How many parts the last commit left in the store: those of the message that this starts from."""

    @property
    def head(self) -> Message:
        """The message's own fields."""
        return self.live.head

    @property
    def is_streaming(self) -> bool:
        """Whether parts may still be appended."""
        return self.head.state == "streaming"

    def size_since(self, version: int) -> int:
        """Return the bytes of the parts that changed above a version."""
        changed = zip(self.sizes, self.part_revisions, strict=True)
        return sum(size for size, revision in changed if revision > version)

    def places(self) -> dict[str, Place]:
        """Return where each part is, by its id."""
        sequence = self.head.sequence
        numbers = range(1, self.live.part_count + 1)
        found = [Place(sequence, number, self.live.part_id(number)) for number in numbers]
        return {place.part_id: place for place in found}

    def is_open(self) -> bool:
        """Say whether the message streams, or one of its parts is not ended."""
        return self.is_streaming or any(is_open(part) for part in self.live.parts())


class FinishedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a draft makes of one message: its new head, the parts it sets, and how many remain."""

    head: Message
    parts: dict[int, Part]
    bodies: dict[int, bytes]
    """The same parts, encoded for the store."""
    part_count: int
    created_version: int
    is_new: bool
    ended: frozenset[int]
    """Those of the parts that are texts or reasonings as they were, but ended."""

    def whole(self) -> Message:
        """Return a new message with its parts."""
        return msgspec.structs.replace(self.head, parts=[self.parts[number] for number in sorted(self.parts)])


class FinishedDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What a draft makes of the projection, all under one version."""

    version: int
    messages: list[FinishedMessage]
    session: Session | None
    turn: Turn | None
    """The turn that runs after it; an ended one has gone."""
    turns: list[Turn]
    """The turns that it changed."""
    queue: list[InputRow]
    inputs: list[InputRow]
    """The inputs that it changed."""
    summaries: list[Summary]
    """Those that it made."""


class Projection:
    """The live state. Reads are whole entities; writes are versioned by the caller."""

    __slots__ = ("changes", "open", "queue", "session", "turn")

    def __init__(self, loaded: LoadedSession) -> None:
        """Start from the store."""
        self.session = loaded.session
        self.turn = loaded.turn
        self.queue = list(loaded.queue)
        self.changes = 0
        """How often anything but appended text changed: what was looked up before that may be wrong."""
        self.open: dict[int, OpenMessage] = {}
        for stored in loaded.open_messages:
            self.open[stored.head.sequence] = OpenMessage(
                rows.whole_message(stored),
                created_version=stored.created_version,
                part_revisions=list(stored.part_revisions),
                sizes=[memoryview(part).nbytes for part in stored.parts],
            )

    def streaming(self) -> OpenMessage | None:
        """Return the agent message that streams, if there is one: there is at most one."""
        return next((message for message in self.open.values() if message.is_streaming), None)

    def find_interaction(self, interaction_id: str) -> tuple[OpenMessage, InteractionPart] | None:
        """Return an interaction of an open message, whatever its status."""
        for message, part in self.open_parts():
            if isinstance(part, InteractionPart) and part.interaction_id == interaction_id:
                return message, part
        return None

    def open_parts(self) -> Iterator[tuple[OpenMessage, Part]]:
        """Return every part of the open messages, in order; also those that have ended."""
        for sequence in sorted(self.open):
            message = self.open[sequence]
            for part in message.live.parts():
                yield message, part

    def accepts(self, part: GrowingPart) -> bool:
        """Say whether text may be appended to a part now; look it up where something changed."""
        if part.known_at != self.changes:
            self._look_up(part)
        return part.message is not None

    def _look_up(self, part: GrowingPart) -> None:
        part.known_at = self.changes
        message = self.open.get(part.sequence)
        if message is None or not message.live.accepts(part.part_sequence, part.place.part_id):
            part.message = None
            return
        head = message.head
        part.message = message
        part.size = message.sizes[part.part_sequence - 1] + part.waits
        part.created_at = head.created_at
        part.is_internal = head.visibility == "internal"
        part.is_last = (
            part.sequence == self.session.message_count and part.part_sequence == message.live.part_count
        )

    def append(
        self, part: GrowingPart, text: str, size: int, *, version: int, now: int
    ) -> tuple[int, LiveMessage]:
        """Append a delta, of ``size`` bytes, to a part that accepts it.

        Returns the time at which its message was changed before, and the message.
        """
        message, number = part.message, part.part_sequence
        if message is None:
            raise KeyError(part.place)
        live = message.live
        before = live.updated_at
        live.append(number, text, revision=version, updated_at=now)
        message.part_revisions[number - 1] = version
        message.sizes[number - 1] = there = message.sizes[number - 1] + size
        part.size = there + part.waits
        message.dirty.add(number)
        return before, live

    def forget(self, sequences: Iterable[int]) -> None:
        """Let open messages go that are not seen any more."""
        self.changes += 1
        for sequence in sequences:
            del self.open[sequence]

    def install(self, finished: FinishedDraft, *, stored: bool) -> None:
        """Take over a draft; ``stored`` says that it, and all before it, is on disk."""
        self.changes += 1
        for message in finished.messages:
            self._install_message(message, finished.version, stored=stored)
        if finished.session is not None:
            self.session = finished.session
        self.turn = finished.turn
        self.queue = finished.queue

    def overlay(self, stored: Message) -> Message:
        """Return the message for the wire: the live one where there is one, else as it was stored."""
        live = self.open.get(stored.sequence)
        return stored if live is None else live.live.message()

    def _install_message(self, finished: FinishedMessage, version: int, *, stored: bool) -> None:
        sequence = finished.head.sequence
        parts = [finished.parts[number] for number in sorted(finished.parts)]
        message = self.open.get(sequence)
        if message is None:
            message = self.open[sequence] = OpenMessage(
                finished.whole(),
                created_version=finished.created_version,
                part_revisions=[version] * len(parts),
                sizes=[len(finished.bodies[part.sequence]) for part in parts],
            )
        else:
            message.live.put(parts, part_count=finished.part_count, head=finished.head)
            for number in sorted(finished.parts):
                message.part_revisions[number - 1 : number] = [version]
                message.sizes[number - 1 : number] = [len(finished.bodies[number])]
            del message.part_revisions[finished.part_count :]
            del message.sizes[finished.part_count :]
        if stored:
            message.dirty.clear()
            message.stored_parts = finished.part_count
            if not message.is_open():
                del self.open[sequence]
        else:
            message.dirty.update(finished.parts)
