"""A session as lines of JSON: the form in which it leaves one database and enters another. Pure.

The first line is a :class:`Header`. Each further line is a map with one key, which says what it
holds: ``turn``, ``message``, ``summary`` or ``input``, in this order. The last is ``end`` with how
many there were, so that a file that was cut is known. Entities are as on the wire (SPEC 2), and
docs/reference.md says what is kept and what is not.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from midstream.protocol.calls import Delivery, Id, InputState
from midstream.protocol.errors import InvalidRequest
from midstream.protocol.frames import Count
from midstream.protocol.lines import BadLine, check_parts, convert, located, read_value
from midstream.protocol.model import Message, Session, Summary, Turn, UserPart
from midstream.protocol.parts import check_part
from midstream.protocol.values import Value

FORMAT = "midstream.session"
FORMAT_VERSION = 1

_KINDS = ("turn", "message", "summary", "input", "end")
"""The lines behind the first, in their order."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line. ``version`` is the session's counter: no revision in the file is above it."""

    format: Literal["midstream.session"] = "midstream.session"
    format_version: Literal[1] = 1
    version: Count
    session: Session


class RememberedInput(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An accepted input: what makes a repeated prompt harmless. ``parts`` are there while it waits."""

    message_id: Id
    content_hash: str
    subject: str
    delivery: Delivery
    state: InputState
    turn_id: str | UnsetType = UNSET
    accepted: Count
    """The version that accepted it."""
    parts: list[UserPart] | UnsetType = UNSET


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The last line: how many lines there were of each kind."""

    turns: Count
    messages: Count
    summaries: Count
    inputs: Count


Line: TypeAlias = Turn | Message | Summary | RememberedInput | End
"""What a line holds, but for the first."""
Entity: TypeAlias = Header | Line
_TYPES: dict[str, type[Line]] = {
    "turn": Turn,
    "message": Message,
    "summary": Summary,
    "input": RememberedInput,
    "end": End,
}
_NAMES: dict[type[msgspec.Struct], str] = {kind: name for name, kind in _TYPES.items()}
_encode = msgspec.json.Encoder().encode


def write_line(entity: Entity) -> bytes:
    """Return the line of an entity, its line break included. The same entity gives the same bytes."""
    whole: object = entity if isinstance(entity, Header) else {_NAMES[type(entity)]: entity}
    return _encode(whole) + b"\n"


class Reader:
    """Reads the lines of an export, one after another, and holds each to the rules of a session.

    What one line cannot show is for the database: that no id of a turn, message, input or interaction
    stands twice, and that each turn that a message names is there.
    """

    def __init__(self) -> None:
        """Begin with the first line."""
        self.line = 0
        """The number of the line that was read last."""
        self.first_message_line = 0
        self.has_ended = False
        self._header: Header | None = None
        self._kind = 0
        self._counts: dict[str, int] = dict.fromkeys(_KINDS, 0)
        self._sequence = 0
        self._through = 0

    @property
    def header(self) -> Header:
        """What the first line says. Raises BadLine where there was none."""
        if self._header is None:
            raise BadLine(1, "", "is missing; an export begins with a header")
        return self._header

    def take(self, data: bytes) -> Entity:
        """Return what the next line holds.

        Raises:
            BadLine: it is not what it must be.

        """
        self.line += 1
        if self.has_ended:
            raise BadLine(self.line, "", "stands behind the end")
        value = read_value(data, self.line)
        if self._header is None:
            return self._take_header(value)
        kind, entity = self._read_entity(value)
        self._counts[kind] += 1
        if isinstance(entity, Message):
            self._check_message(entity)
        elif isinstance(entity, Turn):
            self._check_turn(entity)
        elif isinstance(entity, Summary):
            self._check_summary(entity)
        elif isinstance(entity, RememberedInput):
            self._check_input(entity)
        else:
            self._check_end(entity)
        return entity

    def finish(self) -> None:
        """Say that there are no more lines. Raises BadLine where the last was not the end."""
        if not self.has_ended:
            raise BadLine(self.line + 1, "end", "is missing: the file was cut")

    def _take_header(self, value: dict[str, Value]) -> Header:
        if value.get("format") != FORMAT:
            raise BadLine(1, "format", f"must be {FORMAT!r}; this is no export of midstream")
        if value.get("format_version") != FORMAT_VERSION:
            raise BadLine(1, "format_version", f"must be {FORMAT_VERSION}, which this midstream reads")
        header = cast("Header", convert(value, Header, 1, ""))
        session = header.session
        self._check_numbers(session, "session", "revision", "created_at", "updated_at", "message_count")
        self._check_numbers(session, "session", "summarized_through", "pending_interactions")
        self._check(0 < len(session.session_id) <= 128, "session.session_id", "has 1 to 128 characters")  # noqa: PLR2004 - as Id
        self._check(session.revision <= header.version, "session.revision", "is above the version")
        self._check(
            1 <= session.first_sequence <= session.message_count + 1,
            "session.first_sequence",
            f"must be from 1 to message_count + 1, which is {session.message_count + 1}",
        )
        self._header = header
        self._sequence = self._through = session.first_sequence - 1
        return header

    def _read_entity(self, value: dict[str, Value]) -> tuple[str, Line]:
        kind = next(iter(value), "")
        if len(value) != 1 or kind not in _TYPES:
            raise BadLine(self.line, "", f"must have one key, which is one of {', '.join(_KINDS)}")
        place = _KINDS.index(kind)
        if place < self._kind:
            raise BadLine(self.line, kind, f"stands behind a line of {_KINDS[self._kind]!r}")
        self._kind = place
        return kind, cast("Line", convert(value[kind], _TYPES[kind], self.line, kind))

    def _check_message(self, message: Message) -> None:
        session = self.header.session
        if self._counts["message"] == 1:
            self.first_message_line = self.line
        self._sequence += 1
        self._check(
            message.sequence == self._sequence <= session.message_count,
            "message.sequence",
            f"must be {self._sequence}, and not above the session's message_count, {session.message_count}",
        )
        self._check(
            message.session_id == session.session_id,
            "message.session_id",
            f"must be that of the header, {session.session_id!r}",
        )
        self._check_numbers(message, "message", "revision", "created_at", "updated_at")
        self._check_revision(message, "message")
        self._check(bool(message.message_id), "message.message_id", "must not be empty")
        self._check(
            (message.state is UNSET) == (message.role == "user"),
            "message.state",
            "is there exactly where the role is agent",
        )
        check_parts(message, self.line, "message.parts")

    def _check_turn(self, turn: Turn) -> None:
        self._check_numbers(turn, "turn", "revision", "phase_since", "started_at", "finished_at")
        self._check_revision(turn, "turn")
        self._check(bool(turn.turn_id), "turn.turn_id", "must not be empty")
        running, failed = turn.state == "running", turn.state == "failed"
        self._check(
            (turn.finished_at is UNSET) == running, "turn.finished_at", "is there exactly where it ended"
        )
        self._check((turn.error is not UNSET) == failed, "turn.error", "is there exactly where it failed")

    def _check_summary(self, summary: Summary) -> None:
        session = self.header.session
        self._check_numbers(summary, "summary", "created_at")
        self._check(
            summary.from_sequence == self._through + 1,
            "summary.from_sequence",
            f"must be {self._through + 1}, behind what was summarized before",
        )
        self._check(
            summary.from_sequence <= summary.through_sequence <= session.message_count,
            "summary.through_sequence",
            f"must be from its from_sequence to the session's message_count, {session.message_count}",
        )
        self._check(bool(summary.text.strip()), "summary.text", "has no text")
        self._through = summary.through_sequence

    def _check_input(self, item: RememberedInput) -> None:
        self._check(item.accepted <= self.header.version, "input.accepted", "is above the version")
        for index, part in enumerate([] if item.parts is UNSET else item.parts):
            try:
                check_part("user", part, f"input.parts[{index}]")
            except InvalidRequest as error:
                raise located(self.line, error) from None

    def _check_end(self, end: End) -> None:
        session = self.header.session
        self._check(
            self._sequence == session.message_count,
            "message",
            f"{self._sequence} is the last, and the session has {session.message_count}: lines are missing",
        )
        through = self._through if self._counts["summary"] else 0
        self._check(
            session.summarized_through == through,
            "summary",
            f"{through} is what the last one closes, and the session says {session.summarized_through}",
        )
        for kind, name in zip(_KINDS, end.__struct_fields__, strict=False):
            expected, found = cast("int", getattr(end, name)), self._counts[kind]
            self._check(expected == found, f"end.{name}", f"says {expected}, and there are {found}")
        self.has_ended = True

    def _check_revision(self, entity: Message | Turn, path: str) -> None:
        self._check(
            entity.revision <= self.header.version, f"{path}.revision", "is above the header's version"
        )

    def _check_numbers(self, entity: msgspec.Struct, path: str, *names: str) -> None:
        for name in names:
            number = getattr(entity, name)
            self._check(number is UNSET or number >= 0, f"{path}.{name}", "must not be below 0")

    def _check(self, holds: bool, field: str, problem: str) -> None:  # noqa: FBT001 - an assertion
        if not holds:
            raise BadLine(max(self.line, 1), field, problem)


def renamed(entity: Entity, session_id: str) -> Entity:
    """Return an entity as it is in a session of another id; nothing else of it changes."""
    if isinstance(entity, Message):
        return msgspec.structs.replace(entity, session_id=session_id)
    if isinstance(entity, Header):
        session = msgspec.structs.replace(entity.session, session_id=session_id)
        return msgspec.structs.replace(entity, session=session)
    return entity
