"""A message under construction: cheap to append to, whole whenever it is read.

Appending to a Python string copies it, so a long stream would cost the square of its length.
A live message keeps what was appended in pieces and joins them when somebody looks. Server
(projection) and clients (replica) both hold these; what they hand out are frozen Messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.protocol.model import Message, Part, ReasoningPart, TextPart, ToolPart

if TYPE_CHECKING:
    from collections.abc import Iterable


def can_append(part: Part) -> bool:
    """Say whether a delta may follow: an open text or reasoning part, or a tool that streams its input."""
    if isinstance(part, (TextPart, ReasoningPart)):
        return part.state == "streaming"
    return isinstance(part, ToolPart) and part.state == "input-streaming"


def appended(part: Part, text: str) -> Part:
    """Return the part with ``text`` at the end of its ``text``, or of a tool's ``input_text``.

    Raises:
        TypeError: the part has no text that grows.

    """
    if isinstance(part, (TextPart, ReasoningPart)):
        return structs.replace(part, text=part.text + text)
    if isinstance(part, ToolPart):
        before = "" if part.input_text is UNSET else part.input_text
        return structs.replace(part, input_text=before + text)
    message = f"nothing can be appended to a {type(part).__name__}"
    raise TypeError(message)


class LiveMessage:
    """One message that may still change.

    :meth:`message` gives the whole as a frozen :class:`Message`, the same object until the next
    change; unchanged parts keep their identity from one to the next.
    """

    __slots__ = ("_head", "_is_current", "_parts", "_snapshot", "_tails", "revision", "updated_at")

    def __init__(self, message: Message) -> None:
        """Start from a whole message."""
        self._head = message
        self._is_current = True
        self.revision = message.revision
        """The head's, at hand without making one."""
        self.updated_at = message.updated_at
        """The head's, likewise."""
        self._parts: list[Part] = list(message.parts)
        self._tails: dict[int, list[str]] = {}
        self._snapshot: Message | None = message

    @property
    def head(self) -> Message:
        """The message's own fields, current; its ``parts`` are not."""
        if not self._is_current:
            self._is_current = True
            self._head = structs.replace(self._head, revision=self.revision, updated_at=self.updated_at)
        return self._head

    @property
    def part_count(self) -> int:
        """How many parts there are; their sequences are 1 to this."""
        return len(self._parts)

    def part(self, sequence: int) -> Part:
        """Return one part, whole. Raises IndexError where there is none."""
        if not 1 <= sequence <= len(self._parts):
            raise IndexError(sequence)
        tail = self._tails.pop(sequence, None)
        if tail:
            self._parts[sequence - 1] = appended(self._parts[sequence - 1], "".join(tail))
        return self._parts[sequence - 1]

    def part_id(self, sequence: int) -> str:
        """Return the id of a part, without joining its text. Raises IndexError where there is none."""
        if not 1 <= sequence <= len(self._parts):
            raise IndexError(sequence)
        return self._parts[sequence - 1].part_id

    def parts(self) -> list[Part]:
        """Return all parts, whole; the list is the caller's."""
        for sequence in list(self._tails):
            self.part(sequence)
        return list(self._parts)

    def accepts(self, sequence: int, part_id: str | None = None) -> bool:
        """Say whether a delta to this part, of this id where one is given, would be legal now."""
        if not 1 <= sequence <= len(self._parts):
            return False
        part = self._parts[sequence - 1]
        return can_append(part) and part_id in (None, part.part_id)

    def message(self) -> Message:
        """Return the whole message as it is now."""
        if self._snapshot is None:
            self._snapshot = structs.replace(self.head, parts=self.parts())
        return self._snapshot

    def append(self, sequence: int, text: str, *, revision: int, updated_at: int) -> None:
        """Append text to a part. Costs the text, not the length of what is there already."""
        # hot: no head is made before somebody looks, which were more than all the rest
        tail = self._tails.get(sequence)
        if tail is None:
            self._tails[sequence] = [text]
        else:
            tail.append(text)
        self.revision = revision
        self.updated_at = updated_at
        self._is_current = False
        self._snapshot = None

    def end(self, sequences: Iterable[int]) -> None:
        """End texts and reasonings that stream; nothing else about them changes."""
        for sequence in sequences:
            self._parts[sequence - 1] = structs.replace(self.part(sequence), state="done")
            self._snapshot = None

    def misfit(self, parts: Iterable[Part], part_count: int) -> str | None:
        """Say what stands against :meth:`put`, a hole or too few parts; None if nothing does."""
        length = len(self._parts)
        for sequence in sorted(part.sequence for part in parts):
            if not 1 <= sequence <= length + 1:
                return f"part {sequence} would leave a hole above part {length}"
            length = max(length, sequence)
        return (
            f"{part_count} parts are announced, but only {length} are known" if part_count > length else None
        )

    def put(self, parts: Iterable[Part], *, part_count: int, head: Message) -> None:
        """Set whole parts at their sequences, drop those above ``part_count``, and take the new head.

        Raises:
            ValueError: :meth:`misfit` says why; nothing was changed.

        """
        replaced = sorted(parts, key=lambda part: part.sequence)
        problem = self.misfit(replaced, part_count)
        if problem:
            raise ValueError(problem)
        for part in replaced:
            self._tails.pop(part.sequence, None)
            self._parts[part.sequence - 1 : part.sequence] = [part]
        for sequence in range(part_count + 1, len(self._parts) + 1):
            self._tails.pop(sequence, None)
        del self._parts[part_count:]
        self._head = head
        self._is_current = True
        self.revision = head.revision
        self.updated_at = head.updated_at
        self._snapshot = None
