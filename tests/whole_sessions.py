"""Hypothesis strategies for whole sessions: all entities of one, that fit together, as an export has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st
from msgspec import UNSET, Struct, structs

from midstream.protocol.export import End, Header, RememberedInput
from midstream.protocol.model import InteractionPart, Message, Session, Summary, Turn
from midstream.protocol.transitions import is_open
from midstream.server.sessions.endings import ended
from tests import strategies as mine

if TYPE_CHECKING:
    from midstream.protocol.export import Entity
    from midstream.protocol.model import Part

VERSION = 1_000
"""The version of every drawn session: no revision is above it."""


class Whole(Struct, frozen=True, kw_only=True):
    """A session with all that belongs to it."""

    session: Session
    turns: list[Turn]
    messages: list[Message]
    summaries: list[Summary]
    inputs: list[RememberedInput]

    def entities(self) -> list[Entity]:
        """Return what an export of it holds, line by line."""
        end = End(
            turns=len(self.turns),
            messages=len(self.messages),
            summaries=len(self.summaries),
            inputs=len(self.inputs),
        )
        header = Header(version=VERSION, session=self.session)
        return [header, *self.turns, *self.messages, *self.summaries, *self.inputs, end]


@st.composite
def wholes(draw: st.DrawFn, *, at_rest: bool = True) -> Whole:
    """A session of a few messages; where it is not at rest, anything of it may be open."""
    first = draw(st.integers(1, 3))
    last = first - 1 + draw(st.integers(0, 4))
    turns = draw(st.lists(mine.turns(), max_size=3, unique_by=lambda turn: turn.turn_id))
    messages = [draw(_messages(number, turns)) for number in range(first, last + 1)]
    inputs = draw(st.lists(_inputs(), max_size=2, unique_by=lambda item: item.message_id))
    summaries = draw(_summaries(first, last))
    if at_rest:
        turns = [turn for turn in turns if turn.state != "running"]
        names = {turn.turn_id for turn in turns}
        messages = [_still(message, names) for message in messages]
        inputs = [item for item in inputs if item.state != "queued"]
    # in the order of an export
    turns.sort(key=lambda turn: (turn.revision, turn.turn_id))
    inputs.sort(key=lambda item: (item.accepted, item.message_id))
    session = structs.replace(
        draw(mine.sessions()),
        first_sequence=first,
        message_count=last,
        summarized_through=summaries[-1].through_sequence if summaries else 0,
        running_turn_id=UNSET,
        queue=[item.message_id for item in inputs if item.state == "queued"],
        pending_interactions=0,
    )
    return Whole(session=session, turns=turns, messages=messages, summaries=summaries, inputs=inputs)


@st.composite
def _messages(draw: st.DrawFn, sequence: int, turns: list[Turn]) -> Message:
    message = draw(mine.messages(sequence=sequence))
    turn_ids = [turn.turn_id for turn in turns]
    return structs.replace(
        message,
        turn_id=draw(mine.maybe(st.sampled_from(turn_ids))) if turn_ids else UNSET,
        parts=[_with_id_of_its_own(part, sequence) for part in message.parts],
    )


def _with_id_of_its_own(part: Part, sequence: int) -> Part:
    if isinstance(part, InteractionPart):
        return structs.replace(part, interaction_id=f"ask {sequence}.{part.sequence}")
    return part


def _still(message: Message, turn_ids: set[str]) -> Message:
    parts = [
        ended(part, now=1_800_000_000_000, reason="turn_stopped", why="turn_stopped")
        if is_open(part)
        else part
        for part in message.parts
    ]
    return structs.replace(
        message,
        parts=parts,
        state="done" if message.role == "agent" else UNSET,
        turn_id=message.turn_id if message.turn_id in turn_ids else UNSET,
    )


@st.composite
def _inputs(draw: st.DrawFn) -> RememberedInput:
    state = draw(st.sampled_from(["started", "queued", "absorbed", "cancelled"]))
    parts = [
        structs.replace(part, part_id="", sequence=0) for part in draw(st.lists(mine.user_parts, max_size=2))
    ]
    return structs.replace(
        RememberedInput(
            message_id=draw(mine.names),
            content_hash=draw(mine.names),
            subject=draw(mine.names),
            delivery=draw(st.sampled_from(["auto", "queue", "reject", "interrupt"])),
            state="started",
            turn_id=draw(mine.maybe(mine.names)),
            accepted=draw(st.integers(1, VERSION)),
        ),
        state=state,
        parts=parts if state == "queued" else UNSET,
    )


@st.composite
def _summaries(draw: st.DrawFn, first: int, last: int) -> list[Summary]:
    closed = draw(st.sets(st.integers(first, last), max_size=3)) if last >= first else set[int]()
    summaries: list[Summary] = []
    for through in sorted(closed):
        start = summaries[-1].through_sequence + 1 if summaries else first
        summaries.append(
            Summary(
                from_sequence=start,
                through_sequence=through,
                text=f"said {draw(mine.texts)}",
                created_at=draw(mine.times),
                subject=draw(mine.maybe(mine.names)),
            )
        )
    return summaries
