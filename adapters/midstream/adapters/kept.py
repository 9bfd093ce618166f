"""A step that is written to nowhere but memory: what a stream becomes, without a server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from midstream.agents import Step
from midstream.protocol.agents import NOTHING, AddPart, Context, EndText, MoveTool, ReportError
from midstream.protocol.model import ErrorPart, ReasoningPart, TextPart, ToolPart
from midstream.protocol.parts import check_part
from midstream.protocol.transitions import check_update

if TYPE_CHECKING:
    from midstream.agents.resumption import Resumption
    from midstream.protocol.agents import Ask, Write, WriteResult
    from midstream.protocol.model import InteractionPart, Part


class KeptParts:
    """Takes what an agent writes, by the protocol's own rules, and keeps the parts."""

    session_id = "kept"
    turn_id = "kept"
    resumption: Resumption | None = None

    def __init__(self) -> None:
        """Begin with no part."""
        self._parts: dict[str, Part] = {}
        self._pieces: dict[str, list[str]] = {}
        self._ids: Counter[str] = Counter()

    def step(self) -> Step:
        """Return a step that is kept here."""
        return Step(self)

    @property
    def parts(self) -> list[Part]:
        """All parts in the order of their first appearance, whole."""
        return [self._whole(part_id) for part_id in self._parts]

    def new_id(self, kind: str) -> str:
        """Return the next id of its kind."""
        self._ids[kind] += 1
        return f"{kind}-{self._ids[kind]}"

    def is_running(self) -> bool:
        """Say yes: nothing ends it."""
        return True

    async def write(self, write: Write) -> WriteResult:
        """Keep a write. Raises what the protocol refuses."""
        match write:
            case AddPart():
                self._put(write.part)
            case EndText():
                part = self._parts[write.part_id]
                if isinstance(part, (TextPart, ReasoningPart)):
                    given = write.provider_metadata
                    metadata = part.provider_metadata if given is UNSET else given
                    self._put(structs.replace(part, state="done", provider_metadata=metadata))
            case MoveTool():
                self._move(write)
            case ReportError():
                part_id = self.new_id("part")
                self._put(
                    ErrorPart(
                        part_id=part_id,
                        scope=write.scope,
                        code=write.code,
                        message=write.message,
                        recoverable=write.recoverable,
                    )
                )
            case _:
                pass  # steps and phases: there is one step here, and nobody looks
        return NOTHING

    async def append(self, part_id: str, text: str) -> None:
        """Append to a text, a reasoning or a tool's arguments."""
        self._pieces.setdefault(part_id, []).append(text)

    async def ask(self, question: Ask) -> InteractionPart:
        """Refuse: there is nobody to ask."""
        raise NotImplementedError(f"nobody is here to answer {question.request.title!r}")

    async def outcome(self, interaction_id: str) -> InteractionPart:
        """Refuse: nothing was asked."""
        raise NotImplementedError(f"nobody asked {interaction_id!r}")

    async def context(self, limit: int | None) -> Context:
        """Return no message: there is none, however many are wanted."""
        del limit
        return Context(messages=[])

    def _put(self, part: Part) -> None:
        check_part("agent", part)
        before = self._parts.get(part.part_id)
        if before is not None:
            check_update(before, part)
        self._parts[part.part_id] = part

    def _move(self, write: MoveTool) -> None:
        part = self._parts[write.part_id]
        if isinstance(part, ToolPart):
            fields = structs.asdict(write)
            del fields["part_id"]
            given = {name: value for name, value in fields.items() if value is not UNSET}
            self._put(structs.replace(part, **{"preliminary": UNSET, **given}))

    def _whole(self, part_id: str) -> Part:
        part, words = self._parts[part_id], "".join(self._pieces.get(part_id, ()))
        if isinstance(part, (TextPart, ReasoningPart)):
            return structs.replace(part, text=words)
        if isinstance(part, ToolPart) and part.input_text is not UNSET:
            return structs.replace(part, input_text=words)
        return part
