"""Any life of a session, drawn by Hypothesis: every kind of change that there is, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from hypothesis import strategies as st
from msgspec import structs

from midstream.protocol.live import can_append
from midstream.protocol.model import DataPart, Part, ReasoningPart, TextPart, ToolPart, Turn, TurnPhase
from midstream.server.sessions import turns
from tests.server.sessions.pure_session import PureSession

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.server.sessions.draft import Draft

Kind = Literal[
    "user",
    "internal",
    "agent",
    "part",
    "say",
    "end part",
    "cut",
    "close",
    "turn",
    "end turn",
    "title",
    "store",
]
PHASES: tuple[TurnPhase, ...] = get_args(TurnPhase)


class Deed(NamedTuple):
    """One change: what, which of several, with what text, and whether it is stored at once."""

    kind: Kind
    choice: int
    text: str
    stored: bool


deeds = st.builds(
    Deed,
    st.sampled_from([*get_args(Kind), *["say", "part", "cut", "end part"] * 2]),
    st.integers(0, 5),
    st.text(min_size=1, max_size=4),
    st.booleans(),
)
lives = st.integers(0, 30).flatmap(lambda size: st.lists(deeds, min_size=size, max_size=size + 5))


class Scribe:
    """Carries deeds out on a session; what is not possible now is left out."""

    def __init__(self, session: PureSession) -> None:
        self.session = session

    def do(self, deed: Deed) -> bool:
        """Carry one out; say whether anything was published."""
        before = self.session.versions.published
        getattr(self, f"_{deed.kind.replace(' ', '_')}")(deed)
        return self.session.versions.published > before

    def needed(self, deed: Deed) -> list[Deed]:
        """The deed, after what it needs: an agent's message, or most deeds of most lives would do nothing."""
        streams = self.session.projection.streaming() is not None
        if streams or deed.kind not in {"part", "say", "cut", "end part"}:
            return [deed]
        return [deed._replace(kind="agent"), deed]

    def live(self, life: list[Deed]) -> Iterator[Deed]:
        """Carry out a life, one deed for each step of the iteration."""
        for wanted in life:
            for deed in self.needed(wanted):
                self.do(deed)
                yield deed

    def _finish(self, draft: Draft, *, stored: bool) -> None:
        if draft.is_empty():
            return
        if stored or draft.makes_message() or self.session.versions.room() == 0:
            self.session.commit(draft)
        else:
            self.session.show(draft)

    def _write(self, deed: Deed, *, internal: bool) -> None:
        draft = self.session.draft()
        turns.close_streaming(draft)
        sequence = draft.start_message("user", visibility="internal" if internal else "visible")
        draft.add_part(sequence, TextPart(text=deed.text))
        self._finish(draft, stored=True)

    def _user(self, deed: Deed) -> None:
        self._write(deed, internal=False)

    def _internal(self, deed: Deed) -> None:
        self._write(deed, internal=True)

    def _agent(self, deed: Deed) -> None:
        draft = self.session.draft()
        if draft.streaming() is None:
            sequence = draft.start_message("agent", turn_id=f"t{deed.choice}")
            draft.add_part(sequence, _part(deed))
            self._finish(draft, stored=True)

    def _part(self, deed: Deed) -> None:
        draft = self.session.draft()
        sequence = draft.streaming()
        if sequence is not None:
            draft.add_part(sequence, _part(deed))
            self._finish(draft, stored=deed.stored)

    def _say(self, deed: Deed) -> None:
        places = [
            (message.head.sequence, part.sequence)
            for message, part in self.session.projection.open_parts()
            if can_append(part)
        ]
        if places and self.session.versions.room():
            self.session.say(*places[deed.choice % len(places)], deed.text)

    def _end_part(self, deed: Deed) -> None:
        draft = self.session.draft()
        parts = [
            (message.head.sequence, part)
            for message, part in self.session.projection.open_parts()
            if can_append(part)
        ]
        if parts:
            sequence, part = parts[deed.choice % len(parts)]
            ended: Part = (
                structs.replace(part, state="failed", error=deed.text)
                if isinstance(part, ToolPart)
                else structs.replace(part, state="done")
            )
            draft.put_part(sequence, ended)
            self._finish(draft, stored=deed.stored)

    def _cut(self, deed: Deed) -> None:
        draft = self.session.draft()
        sequence = draft.streaming()
        if sequence is not None:
            draft.truncate(sequence, min(deed.choice, draft.message(sequence).count))
            if deed.choice % 2:
                draft.add_part(sequence, _part(deed))
            self._finish(draft, stored=deed.stored)

    def _close(self, _: Deed) -> None:
        draft = self.session.draft()
        turns.close_streaming(draft)
        self._finish(draft, stored=True)

    def _turn(self, deed: Deed) -> None:
        draft = self.session.draft()
        phase = PHASES[deed.choice % len(PHASES)]
        if draft.turn is not None:
            draft.set_phase(phase)
            self._finish(draft, stored=deed.stored)
            return
        draft.set_turn(
            Turn(
                turn_id=draft.ids.new("turn"),
                revision=0,
                state="running",
                phase=phase,
                phase_since=draft.now,
                started_at=draft.now,
            )
        )
        self._finish(draft, stored=True)

    def _end_turn(self, _: Deed) -> None:
        draft = self.session.draft()
        turns.end_turn(draft, "completed", reason="turn_stopped")
        self._finish(draft, stored=True)

    def _title(self, deed: Deed) -> None:
        draft = self.session.draft()
        draft.session = structs.replace(draft.session, title=deed.text)
        self._finish(draft, stored=True)

    def _store(self, _: Deed) -> None:
        draft = self.session.draft()
        for sequence in draft.open_sequences():
            draft.message(sequence)
        self._finish(draft, stored=True)


def _part(deed: Deed) -> Part:
    kinds: list[Part] = [
        TextPart(text="", state="streaming"),
        ReasoningPart(text=deed.text, state="streaming"),
        ToolPart(tool_call_id=deed.text, tool_name="t", state="input-streaming"),
        DataPart(data_type="d", data=deed.text),
    ]
    return kinds[deed.choice % len(kinds)]
