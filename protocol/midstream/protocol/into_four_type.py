"""A conversation in the older form of four types, as far as that has a place for it. Pure.

What it has none for is counted, so that whoever asked can be told. docs/reference.md lists it.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, TypedDict, cast

import msgspec
from msgspec import UNSET, UnsetType, structs

from midstream.protocol.four_type import (
    ActionRecord,
    AssistantRecord,
    ErrorRecord,
    InputType,
    Record,
    Status,
    UserRecord,
)
from midstream.protocol.model import ActionPart, ErrorPart, Part, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.protocol.model import Message, Session, Summary, Turn, UserPart, Visibility

_STATUS: dict[str, Status] = {
    "running": "streaming",
    "completed": "completed",
    "failed": "failed",
    "stopped": "stopped",
}
_encode = msgspec.json.Encoder().encode


class FourTypeWriter:
    """Makes records of messages, turns and summaries, in the order of the conversation."""

    def __init__(self) -> None:
        """Begin with the first message."""
        self.lost: Counter[str] = Counter()
        """What found no place: a description, and how often."""
        self._sequence = 0
        self._summaries = 0
        self._turn: Turn | None = None
        self._held: list[Record] = []
        """The records of a turn from its last assistant record on: that one gets the turn's outcome."""

    def session(self, session: Session) -> None:
        """Note what of the session's own fields finds no place."""
        lost = {
            "titles": session.title is not UNSET,
            "metadata": bool(session.metadata),
            "archived sessions": session.archived_at is not UNSET,
            "approval modes": session.approval_mode != "ask",
            "numbers of messages, because some were cleared": session.first_sequence > 1,
        }
        self.lost.update(what for what, is_lost in lost.items() if is_lost)

    def take(self, message: Message, turn: Turn | None) -> Iterator[bytes]:
        """Return the lines that the next message completes; ``turn`` is its turn."""
        if self._held and (self._turn is None or turn is None or turn.turn_id != self._turn.turn_id):
            yield from self._release(is_end=True)
        self._turn = turn
        if message.origin is not UNSET:
            self.lost["origins of copied messages"] += 1
        for record in self._records(message):
            if isinstance(record, AssistantRecord):
                yield from self._release(is_end=False)
            self._held.append(record)

    def summary(self, summary: Summary) -> None:
        """Take a summary, behind the last message that it closes."""
        self._summaries += 1
        record = AssistantRecord(
            message_id=f"summary_{self._summaries}",
            created_at=summary.created_at,
            kind="summary",
            parts=[TextPart(text=summary.text, state="done")],
        )
        if summary.subject is not UNSET:
            self.lost["subjects of summaries"] += 1
        self._held.append(record)

    def finish(self) -> Iterator[bytes]:
        """Return the lines that are left."""
        return self._release(is_end=True)

    def _release(self, *, is_end: bool) -> Iterator[bytes]:
        held, self._held = self._held, []
        if is_end and self._turn is not None and held:
            held = self._with_outcome(held, self._turn)
        for record in held:
            self._sequence += 1
            yield _encode(structs.replace(record, sequence=self._sequence)) + b"\n"

    def _with_outcome(self, held: list[Record], turn: Turn) -> list[Record]:
        status = _STATUS[turn.state]
        for index, record in enumerate(held):
            if isinstance(record, AssistantRecord) and record.kind == "message":
                return [*held[:index], structs.replace(record, status=status), *held[index + 1 :]]
        said = {"failed"} if any(isinstance(record, ErrorRecord) for record in held) else set[str]()
        if status not in {"completed", *said}:
            self.lost[f"outcomes of turns that were {turn.state} before the agent said anything"] += 1
        return held

    def _records(self, message: Message) -> Iterator[Record]:
        if message.role == "user":
            yield _user(message)
            return
        pieces: list[tuple[bool, list[Part]]] = []
        for alone, group in groupby(message.parts, _is_record):
            parts = list(group)
            pieces.extend([(True, [part]) for part in parts] if alone else [(False, parts)])
        pieces = pieces or [(False, [])]
        if len(pieces) > 1:
            self.lost["messages that were cut, because actions and errors are records of their own"] += 1
        for number, (alone, parts) in enumerate(pieces, 1):
            message_id = message.message_id if number == 1 else f"{message.message_id}~{number}"
            piece = structs.replace(message, message_id=message_id, parts=parts)
            yield _alone(piece) if alone else _assistant(piece)


def _user(message: Message) -> UserRecord:
    kinds = {str(part.__struct_config__.tag) for part in message.parts}
    parts = [
        structs.replace(part, state="done") if isinstance(part, TextPart) else part for part in message.parts
    ]
    return UserRecord(
        **_fields(message),
        input_type=cast("InputType", next(iter(kinds))) if len(kinds) == 1 else "mixed",
        parts=cast("list[UserPart]", parts),
    )


def _assistant(message: Message) -> AssistantRecord:
    parts = [structs.replace(part, sequence=number) for number, part in enumerate(message.parts, 1)]
    return AssistantRecord(**_fields(message), parts=parts)


def _alone(message: Message) -> ActionRecord | ErrorRecord:
    (part,) = message.parts
    if isinstance(part, ActionPart):
        return ActionRecord(
            **_fields(message),
            action_id=part.action_id,
            action_type=part.action_type,
            state=part.state,
            title=part.title,
            description=part.description,
            data=part.data,
        )
    error = cast("ErrorPart", part)
    return ErrorRecord(
        **_fields(message),
        scope=error.scope,
        code=error.code,
        message=error.message,
        recoverable=error.recoverable,
    )


def _is_record(part: Part) -> bool:
    return isinstance(part, (ActionPart, ErrorPart))


class _Fields(TypedDict):
    message_id: str
    session_id: str
    turn_id: str | UnsetType
    created_at: int
    updated_at: int
    visibility: Visibility


def _fields(message: Message) -> _Fields:
    return _Fields(
        message_id=message.message_id,
        session_id=message.session_id,
        turn_id=message.turn_id,
        created_at=message.created_at,
        updated_at=message.updated_at,
        visibility="internal" if message.visibility == "internal" else "visible",
    )
