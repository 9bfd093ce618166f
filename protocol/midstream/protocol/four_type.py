"""The older form of a conversation: records of four types, each at top level. Read into the model. Pure.

``user``, ``assistant``, ``action`` and ``error`` each stood in the sequence; a summary was an
``assistant`` record of another kind. docs/reference.md has the form, the mapping and an example.
What has no place in the model is refused by line and field, never dropped.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType, structs

from midstream.protocol.calls import Id, Sequence
from midstream.protocol.export import Header
from midstream.protocol.frames import Count
from midstream.protocol.lines import BadLine, check_parts, convert, read_value
from midstream.protocol.model import (
    ActionPart,
    ActionState,
    ErrorPart,
    ErrorScope,
    Message,
    Part,
    Session,
    Summary,
    TextPart,
    Turn,
    TurnFailure,
    TurnState,
    UserPart,
    Visibility,
)
from midstream.protocol.values import Value

Status: TypeAlias = Literal["streaming", "completed", "done", "stopped", "failed"]
"""How an answer stands; ``done`` is another word for ``completed``."""
InputType: TypeAlias = Literal["text", "context", "file", "data", "mixed"]
Kind: TypeAlias = Literal["message", "summary"]
COMPLETED: tuple[Status, ...] = ("completed", "done")
_STATES: dict[Status, TurnState] = {
    "streaming": "running",
    "completed": "completed",
    "done": "completed",
    "stopped": "stopped",
    "failed": "failed",
}
NO_REASON = TurnFailure(code="unknown", message="The older record does not say why.")
"""Of a turn that failed and has no error record."""
REVISION = 1
"""Of everything, and the session's version: the older form did not count changes."""


class _Record(msgspec.Struct, tag_field="type", frozen=True, omit_defaults=True, kw_only=True):
    """What every record has. ``sequence`` ascends; it may have holes, or be absent."""

    message_id: Id
    session_id: Id | UnsetType = UNSET
    turn_id: Id | UnsetType = UNSET
    sequence: Sequence | UnsetType = UNSET
    created_at: Count
    updated_at: Count | UnsetType = UNSET
    visibility: Visibility = "visible"


class UserRecord(_Record, tag="user", frozen=True, omit_defaults=True, kw_only=True):
    """What a user said. It was complete when it was written, and so are its texts."""

    kind: Kind = "message"
    status: Literal["completed", "done"] = "completed"
    input_type: InputType | UnsetType = UNSET
    parts: list[UserPart]


class AssistantRecord(_Record, tag="assistant", frozen=True, omit_defaults=True, kw_only=True):
    """What an agent said, and how it ended."""

    kind: Kind = "message"
    status: Status = "completed"
    parts: list[Part]


class ActionRecord(_Record, tag="action", frozen=True, omit_defaults=True, kw_only=True):
    """Something that was done."""

    action_id: Id
    action_type: str
    state: ActionState
    title: str
    description: str | UnsetType = UNSET
    data: dict[str, Value] | UnsetType = UNSET


class ErrorRecord(_Record, tag="error", frozen=True, omit_defaults=True, kw_only=True):
    """A failure."""

    scope: ErrorScope
    code: str
    message: str
    recoverable: bool


Record: TypeAlias = UserRecord | AssistantRecord | ActionRecord | ErrorRecord
Made: TypeAlias = Message | Turn | Summary


class FourTypeReader:
    """Makes messages, turns and summaries of records, one line after another.

    Each record becomes a message at its place, but for a summary, which has none: what follows it is
    numbered without it. The records of a turn stand together; its :class:`Turn` comes when the next
    begins, or the lines end.
    """

    def __init__(self, session_id: str | None = None) -> None:
        """Read into the session ``session_id``, or into the one that the records name."""
        self.line = 0
        self._asked_id = session_id
        self._named_id: str | None = None
        self._sequence = 0
        self._old_sequence = 0
        self._through = 0
        self._times: tuple[int, int] | None = None
        self._turn: _OldTurn | None = None

    def take(self, data: bytes) -> list[Made]:
        """Return what the next line becomes.

        Raises:
            BadLine: it is no record of the four types, or holds what the model has no place for.

        """
        self.line += 1
        value = read_value(data, self.line)
        record = cast("Record", convert(value, Record, self.line, ""))
        self._check_place(record)
        self._session_id()
        created = record.created_at
        earliest, latest = self._times or (created, created)
        self._times = min(earliest, created), max(latest, _updated(record))
        if isinstance(record, (UserRecord, AssistantRecord)) and record.kind == "summary":
            return self._summary(record)
        self._sequence += 1
        message = self._message(record)
        check_parts(message, self.line, "parts")
        ended = self._follow_turn(record, message)
        return [*ended, message]

    def finish(self) -> tuple[list[Made], Header]:
        """Return what the end of the lines completes, and the session.

        Raises:
            BadLine: no session was named.

        """
        if self._times is None:
            raise BadLine(self.line + 1, "", "is missing: there is no record")
        made: list[Made] = [] if self._turn is None else [self._turn.entity()]
        session = Session(
            session_id=self._session_id(),
            revision=REVISION,
            created_at=self._times[0],
            updated_at=self._times[1],
            message_count=self._sequence,
            summarized_through=self._through,
        )
        return made, Header(version=REVISION, session=session)

    def _session_id(self) -> str:
        found = self._asked_id or self._named_id
        if found is None:
            raise BadLine(self.line, "session_id", "is in no record; say which session is meant (--session)")
        return found

    def _check_place(self, record: Record) -> None:
        if record.session_id is not UNSET:
            if self._named_id not in {None, record.session_id}:
                raise BadLine(self.line, "session_id", f"must be that of the lines above, {self._named_id!r}")
            self._named_id = record.session_id
        if record.sequence is not UNSET:
            if record.sequence <= self._old_sequence:
                raise BadLine(self.line, "sequence", f"must be above the last one, {self._old_sequence}")
            self._old_sequence = record.sequence

    def _summary(self, record: UserRecord | AssistantRecord) -> list[Made]:
        texts = [part.text for part in record.parts if isinstance(part, TextPart)]
        if len(texts) < len(record.parts):
            raise BadLine(self.line, "parts", "has more than text; a summary is text alone")
        text = "\n\n".join(texts)
        if not text.strip():
            raise BadLine(self.line, "parts", "has no text; a summary says something")
        if record.visibility != "visible":
            raise BadLine(self.line, "visibility", "is 'internal'; a summary is seen by every reader")
        if record.status not in COMPLETED:
            raise BadLine(self.line, "status", f"is {record.status!r}; a summary is there or not")
        if self._sequence == self._through:
            raise BadLine(self.line, "kind", "is 'summary', and no message stands since the last one")
        start, self._through = self._through + 1, self._sequence
        return [
            Summary(
                from_sequence=start, through_sequence=self._through, text=text, created_at=record.created_at
            )
        ]

    def _message(self, record: Record) -> Message:
        state: Literal["streaming", "done"] | UnsetType = "done"
        if isinstance(record, UserRecord):
            state = UNSET
        elif isinstance(record, AssistantRecord) and record.status == "streaming":
            state = "streaming"
        return Message(
            message_id=record.message_id,
            session_id=self._session_id(),
            turn_id=_turn_id(record),
            sequence=self._sequence,
            revision=REVISION,
            role="user" if isinstance(record, UserRecord) else "agent",
            visibility=record.visibility,
            created_at=record.created_at,
            updated_at=_updated(record),
            state=state,
            parts=[_placed(part, number) for number, part in enumerate(self._parts(record), 1)],
        )

    def _parts(self, record: Record) -> list[Part]:
        if isinstance(record, AssistantRecord):
            return record.parts
        if isinstance(record, UserRecord):
            return self._user_parts(record)
        if isinstance(record, ActionRecord):
            return [
                ActionPart(
                    action_id=record.action_id,
                    action_type=record.action_type,
                    state=record.state,
                    title=record.title,
                    description=record.description,
                    data=record.data,
                )
            ]
        return [
            ErrorPart(
                scope=record.scope, code=record.code, message=record.message, recoverable=record.recoverable
            )
        ]

    def _user_parts(self, record: UserRecord) -> list[Part]:
        kinds = {str(part.__struct_config__.tag) for part in record.parts}
        if record.input_type not in {UNSET, "mixed", *(kinds if len(kinds) == 1 else ())}:
            problem = f"is {record.input_type!r}, and its parts are {', '.join(sorted(kinds)) or 'none'}"
            raise BadLine(self.line, "input_type", problem)
        parts: list[Part] = []
        for index, part in enumerate(record.parts):
            if isinstance(part, TextPart) and part.state == "streaming":
                raise BadLine(self.line, f"parts[{index}].state", "must be 'done' in what a user said")
            parts.append(structs.replace(part, state=UNSET) if isinstance(part, TextPart) else part)
        return parts

    def _follow_turn(self, record: Record, message: Message) -> list[Made]:
        """Take a record into its turn; return the turn that ended before it."""
        ended: list[Made] = []
        if self._turn is not None and self._turn.turn_id != message.turn_id:
            ended.append(self._turn.entity())
            self._turn = None
        if message.turn_id is not UNSET:
            self._turn = self._turn or _OldTurn(message.turn_id, message.created_at)
            self._turn.take(record, message, self.line)
        return ended


class _OldTurn:
    """The turn of records that stand together."""

    def __init__(self, turn_id: str, started_at: int) -> None:
        self.turn_id = turn_id
        self._started_at = started_at
        self._finished_at = started_at
        self._said_at: int | None = None
        self._status: Status | None = None
        self._failure: TurnFailure | None = None

    def take(self, record: Record, message: Message, line: int) -> None:
        self._finished_at = max(self._finished_at, message.updated_at)
        if isinstance(record, ErrorRecord) and record.scope == "turn":
            self._failure = TurnFailure(code=record.code, message=record.message)
        if isinstance(record, AssistantRecord):
            if self._status not in {None, *COMPLETED}:
                problem = f"{self.turn_id!r} ended as {self._status!r} above; nothing follows a turn's end"
                raise BadLine(line, "turn_id", problem)
            self._status = record.status
            self._said_at = message.updated_at

    def entity(self) -> Turn:
        """Return the turn. One without an assistant record failed where it has an error, else completed."""
        status = self._status or ("failed" if self._failure else "completed")
        running = status == "streaming"
        return Turn(
            turn_id=self.turn_id,
            revision=REVISION,
            state=_STATES[status],
            phase="starting" if self._said_at is None else "streaming",
            phase_since=self._started_at if self._said_at is None else self._said_at,
            started_at=self._started_at,
            finished_at=UNSET if running else self._finished_at,
            error=(self._failure or NO_REASON) if status == "failed" else UNSET,
        )


def _turn_id(record: Record) -> str | UnsetType:
    """Return the record's turn; an answer that did not complete needs one, to have an outcome."""
    if isinstance(record, AssistantRecord) and record.turn_id is UNSET and record.status not in COMPLETED:
        return f"turn_{record.message_id}"
    return record.turn_id


def _updated(record: Record) -> int:
    return record.created_at if record.updated_at is UNSET else record.updated_at


def _placed(part: Part, number: int) -> Part:
    return structs.replace(part, part_id=part.part_id or f"part_{number}", sequence=part.sequence or number)
