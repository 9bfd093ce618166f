"""What to print next, given what was printed: a replica, seen through a terminal that only goes down. Pure.

A terminal cannot take back what stands in it. So a transcript remembers what it showed of each
part and gives the rest, in order. It never shows a word twice because of a reconnect. Where
something was taken back (a crash lost text that was never stored, or a step was repeated), it says
so and shows the message again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from midstream.cli.lines import part_lines, turn_line
from midstream.cli.pieces import Heading, Kind, Line, Piece, Text, clean
from midstream.protocol.model import ErrorPart, Message, ReasoningPart, TextPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from midstream.protocol.model import Part, Turn

TAKEN_BACK = "What stands above was taken back before it was stored. The message as it is now:"
CLEARED = "the conversation was cleared"
LEFT_OUT = "messages in between are not shown: too much happened meanwhile"

_Streamed: TypeAlias = TextPart | ReasoningPart


class _Shown:
    """What was printed of one message."""

    __slots__ = ("closed", "open", "parts", "revision", "texts")

    def __init__(self) -> None:
        self.revision = -1
        self.texts: dict[str, str] = {}
        self.closed: set[str] = set()
        self.open: dict[str, Kind] = {}
        self.parts: dict[str, Part] = {}

    def contradicts(self, message: Message) -> bool:
        """Say whether something that was printed is not in the message (any more)."""
        now = {part.part_id: part for part in message.parts}
        if self.parts.keys() - now.keys():
            return True
        for part_id, text in self.texts.items():
            part = now.get(part_id)
            if not isinstance(part, _Streamed) or not part.text.startswith(text):
                return True
        return False


class Transcript:
    """What one terminal shows of a session.

    ``own`` are the ids of the messages that were written here; add to it before they are sent.
    Messages that came before the first one shown are printed by :meth:`earlier` alone.
    """

    def __init__(self) -> None:
        self.own: set[str] = set()
        self._shown: dict[str, _Shown] = {}
        self._ended: set[str] = set()
        self._lowest: int | None = None
        self._highest = 0
        self._first_sequence = 1

    def update(self, messages: Sequence[Message], turns: Mapping[str, Turn]) -> list[Piece]:
        """Return what is new since the last call. ``messages`` ascend and are all that are known.

        Where a part of an earlier message still streams, later messages wait; within a message text
        waits for the text before it, but tools, questions and errors never wait.
        """
        pieces: list[Piece] = []
        if messages:
            first = messages[0].sequence
            if self._lowest is None:
                self._lowest = first
            elif first > max(self._highest + 1, self._first_sequence):
                pieces.append(Line("note", LEFT_OUT))
            self._highest = max(self._highest, messages[-1].sequence)
        for index, message in enumerate(messages):
            if self._lowest is not None and message.sequence < self._lowest:
                continue
            open_part = self._message(message, pieces)
            if open_part:
                break
            after = messages[index + 1] if index + 1 < len(messages) else None
            if message.turn_id and (after is None or after.turn_id != message.turn_id):
                self._turn_end(turns.get(message.turn_id), messages, pieces)
        return pieces

    def earlier(self, messages: Sequence[Message]) -> list[Piece]:
        """Return the messages that came before all that was shown; they count as shown from now on."""
        lowest = self._lowest
        older = [message for message in messages if lowest is None or message.sequence < lowest]
        if not older:
            return [Line("note", "there is nothing earlier")]
        pieces: list[Piece] = [Line("note", f"{len(older)} earlier messages:")]
        for message in older:
            self._message(message, pieces)
        self._lowest = older[0].sequence
        pieces.append(Line("note", "so far the earlier messages"))
        return pieces

    def cleared(self, first_sequence: int) -> list[Piece]:
        """Learn the session's first sequence; return a note where messages were removed."""
        if first_sequence <= self._first_sequence:
            return []
        self._first_sequence = first_sequence
        return [Line("note", CLEARED)] if self._shown else []

    def _message(self, message: Message, pieces: list[Piece]) -> bool:
        """Add what is new of one message; return whether one of its parts is still streaming."""
        shown = self._shown.get(message.message_id)
        if shown is None:
            shown = self._begin(message, pieces)
        elif shown.revision == message.revision:
            return _streams(message)
        elif shown.contradicts(message):
            pieces += [Text(part_id, kind, "", done=True) for part_id, kind in shown.open.items()]
            pieces.append(Line("warning", TAKEN_BACK))
            shown = self._begin(message, pieces)
        shown.revision = message.revision
        waiting = False
        for part in message.parts:
            if not isinstance(part, _Streamed):
                before = shown.parts.get(part.part_id)
                if part != before:
                    pieces += part_lines(part, before)
                    shown.parts[part.part_id] = part
            elif not waiting:
                _continue(part, shown, pieces)
                waiting = part.state == "streaming"
        return _streams(message)

    def _begin(self, message: Message, pieces: list[Piece]) -> _Shown:
        shown = self._shown[message.message_id] = _Shown()
        mine = "you" if message.message_id in self.own else "user"
        pieces.append(Heading("agent" if message.role == "agent" else mine))
        return shown

    def _turn_end(self, turn: Turn | None, messages: Sequence[Message], pieces: list[Piece]) -> None:
        if turn is None or turn.state == "running" or turn.turn_id in self._ended:
            return
        self._ended.add(turn.turn_id)
        line = turn_line(turn)
        if line and not (turn.state == "failed" and _says_why(turn, messages)):
            pieces.append(line)


def _continue(part: _Streamed, shown: _Shown, pieces: list[Piece]) -> None:
    printed = shown.texts.get(part.part_id, "")
    done = part.state != "streaming"
    if part.part_id in shown.closed and len(part.text) == len(printed):
        return
    kind: Kind = "reasoning" if isinstance(part, ReasoningPart) else "text"
    if len(part.text) > len(printed) or done:
        pieces.append(Text(part.part_id, kind, clean(part.text[len(printed) :]), done))
    shown.texts[part.part_id] = part.text
    if done:
        shown.closed.add(part.part_id)
        shown.open.pop(part.part_id, None)
    else:
        shown.open[part.part_id] = kind


def _streams(message: Message) -> bool:
    return any(isinstance(part, _Streamed) and part.state == "streaming" for part in message.parts)


def _says_why(turn: Turn, messages: Iterable[Message]) -> bool:
    parts = (part for message in messages if message.turn_id == turn.turn_id for part in message.parts)
    return any(isinstance(part, ErrorPart) for part in parts)
