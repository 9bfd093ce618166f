"""What the cases reach: each is played once, before two readers, and its two states are compared."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from midstream.protocol.transitions import state_of
from tests.laws.case import Case, Playing
from tests.laws.mutations import MUTATIONS
from tests.laws.reader import Reader
from tests.laws.scene import Scene
from tests.laws.world import World, pause, play

if TYPE_CHECKING:
    from midstream.protocol.merge import Replica
    from midstream.protocol.model import Message, Part, Session, Turn

Move = tuple[str, str | None, str]
"""A machine of the state tables, the state before (None: there was nothing), and the state after."""


@dataclass
class Reach:
    """What changed in one case, or in several.

    Attributes:
        parts: types of parts that are new or different.
        moves: how states moved; to itself where other fields of an open part changed.
        fields: fields of the session that changed.
        phases: phases that a turn came to.
        tags: of the frames that carried it, in both views.
    """

    parts: set[str] = field(default_factory=set[str])
    moves: set[Move] = field(default_factory=set[Move])
    fields: set[str] = field(default_factory=set[str])
    phases: set[str] = field(default_factory=set[str])
    tags: set[str] = field(default_factory=set[str])

    def __ior__(self, other: Reach) -> Self:
        """Add what another case reached."""
        for name in ("parts", "moves", "fields", "phases", "tags"):
            getattr(self, name).update(getattr(other, name))
        return self


@dataclass(frozen=True)
class _State:
    """What a replica showed, in entities."""

    session: Session | None
    turns: dict[str, Turn]
    messages: dict[str, Message]

    @classmethod
    def of(cls, replica: Replica) -> _State:
        messages = {message.message_id: message for message in replica.messages()}
        return cls(replica.session, dict(replica.turns), messages)


@cache
def reached() -> dict[str, Reach]:
    """Play every case, and say what each reaches."""
    return {name: _reach_of(case) for name, case in MUTATIONS.items()}


def all_reached() -> Reach:
    """Say what the cases reach together."""
    together = Reach()
    for reach in reached().values():
        together |= reach
    return together


def _reach_of(case: Case) -> Reach:
    found = Reach()

    async def story(world: World) -> None:
        scene = await Scene.begin(world)
        playing = Playing(case, scene)
        await playing.before()
        readers = [await scene.reader(), await scene.reader(include_internal=True)]
        old = _State.of(readers[1].replica)
        for reader in readers:
            reader.tags.clear()
        await playing.change()
        await pause()
        new = _State.of((await _arrived(world, readers[1])).replica)
        _compare(old, new, found)
        found.tags.update(*(reader.tags for reader in readers))

    with tempfile.TemporaryDirectory() as directory:
        play(story, Path(directory))
    return found


async def _arrived(world: World, reader: Reader) -> Reader:
    if not reader.line.is_open:
        await reader.rejoin(await world.line())
    return reader


def _compare(old: _State, new: _State, found: Reach) -> None:
    for name in new.session.__struct_fields__ if new.session else ():
        if getattr(old.session, name) != getattr(new.session, name):
            found.fields.add(name)
    for turn_id, turn in new.turns.items():
        before = old.turns.get(turn_id)
        if before != turn:
            found.moves.add(("turn", before.state if before else None, turn.state))
            found.phases.add(turn.phase)
    for message_id, message in new.messages.items():
        was = old.messages.get(message_id)
        if message.state and (was is None or was.state != message.state):
            found.moves.add(("stream", was.state or None if was else None, message.state))
        parts = {part.part_id: part for part in was.parts} if was else {}
        for part in message.parts:
            _compare_part(parts.get(part.part_id), part, found)


def _compare_part(old: Part | None, new: Part, found: Reach) -> None:
    if old == new:
        return
    found.parts.add(_type_of(new))
    state = state_of(new)
    if state is not None:
        before = None if old is None else state_of(old)
        found.moves.add((state[0], before[2] if before else None, state[2]))


def _type_of(part: Part) -> str:
    tag: Any = part.__struct_config__.tag
    return str(tag)
