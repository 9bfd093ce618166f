"""The merge law against an oracle: whatever is lost or late, a replica is the session at a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from midstream.protocol.calls import Cursor
from midstream.protocol.frames import Mark, SessionFrame, Skip, Sync
from midstream.protocol.live import can_append
from midstream.protocol.merge import Replica, SavedReplica, Stage
from midstream.protocol.model import Part, ReasoningPart, TextPart, ToolPart, Turn
from midstream.protocol.outcomes import Gap, PageOutcome
from tests.protocol.session_model import CHANNEL, NAME, SessionModel

if TYPE_CHECKING:
    from midstream.protocol.calls import Page

TEXTS = ["a", "bc", "é", "🙂", "\n"]
SAVED = msgspec.msgpack.Decoder(SavedReplica)
WEIGHTS = {
    "grow": 24,
    "open_part": 8,
    "close_part": 4,
    "abandon_parts": 2,
    "user_message": 3,
    "internal_message": 2,
    "agent_message": 5,
    "end_message": 2,
    "rename": 2,
    "clear": 1,
    "deliver": 16,
    "lose": 2,
    "repeat": 2,
    "fall_behind": 2,
    "join_skips": 2,
    "subscribe_with_cursor": 2,
    "subscribe_for_newest": 2,
    "subscribe_bare": 2,
    "ask_for_page": 8,
    "page_arrives": 8,
    "store_and_load": 1,
    "restart": 1,
    "begin_epoch_below": 1,
}
Step: TypeAlias = tuple[str, int, int]
steps = st.tuples(
    st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)]),
    st.integers(0, 11),
    st.integers(0, 11),
)
schedules = st.lists(steps, min_size=40, max_size=100)


class Conversation:
    """A session that changes, and one reader behind a link that loses, doubles and delays."""

    def __init__(self, *, internal: bool, history: int) -> None:
        self.internal = internal
        self.server = SessionModel()
        for number in range(history):
            self.user_message(number, 0) if number % 3 else self.internal_message(number, 0)
        if history:
            self.agent_message(0, 0)
            self.open_part(0, 0)
        self.replica = Replica(NAME, include_internal=internal)
        self.link: list[SessionFrame] = []
        self.sent: list[SessionFrame] = []
        self.pages: list[Page] = []
        self.seen: set[str] = set()
        self.subscribe(0)

    def run(self, schedule: list[Step]) -> None:
        """Do all steps, and after each look at the replica."""
        for name, a, b in schedule:
            getattr(self, name)(a, b)
            self.look()
        self.quiet()

    def look(self) -> None:
        """Never torn, doubled or partly applied: the replica is the session at the replica's version."""
        if self.replica.session is None:
            return
        state = self.server.states[self.replica.version]
        first = self.replica.from_sequence
        shown = state.seen(internal=self.internal)
        assert self.replica.messages() == [m for m in shown if first is not None and m.sequence >= first]
        assert self.replica.session == state.session
        assert all(turn == state.turns[name] for name, turn in self.replica.turns.items())
        running = state.session.running_turn_id
        assert self.replica.running_turn == (None if running is UNSET else state.turns[running])
        cursor = self.replica.cursor()
        assert cursor is None or cursor.durable <= cursor.version
        assert cursor is None or cursor.epoch == state.epoch
        assert first is None or self.replica.has_more or not [m for m in shown if m.sequence < first]

    def quiet(self) -> None:
        """At last everything arrives, and the replica is the whole session."""
        self.deliver(10_000, 0)
        self.take(Mark(CHANNEL, self.server.version))
        if self.replica.stage is not Stage.LIVE:
            self.subscribe(None)
        while self.replica.has_more:
            page = self.server.page(self.replica.from_sequence, internal=self.internal, limit=2)
            assert self.replica.merge_page(page) is PageOutcome.MERGED
        assert (self.replica.epoch, self.replica.version) == (self.server.epoch, self.server.version)
        assert self.replica.messages() == self.server.state.seen(internal=self.internal)
        self.look()

    def subscribe(self, limit: int | None) -> None:
        """Subscribe, with the cursor or for a reset; what was under way is ignored from then on."""
        self.flush()
        self.link.clear()
        cursor = self.replica.cursor() if limit is None else None
        if cursor is None:
            payload = self.server.reset(internal=self.internal, limit=3 if limit is None else limit)
        else:
            payload = self.server.sync(cursor, internal=self.internal)
        self.take(Sync(CHANNEL, payload))

    def flush(self) -> None:
        """Put what the server made onto the link."""
        frames = self.server.frames[self.internal]
        self.link += frames
        self.sent += frames
        frames.clear()

    def take(self, frame: SessionFrame) -> None:
        """Give the replica a frame, and do what it asks for."""
        before = self.replica.messages(), self.replica.version
        outcome = self.replica.apply(frame)
        self.seen.add(f"{type(frame).__name__} {type(outcome).__name__}")
        if isinstance(outcome, Gap):
            assert (self.replica.messages(), self.replica.version) == before
            assert outcome.keep_cursor == (self.replica.cursor() is not None)
            self.subscribe(None if outcome.keep_cursor else 2)

    # what the server does

    def streaming(self) -> list[int]:
        """The messages that stream."""
        return [m.sequence for m in self.server.state.messages.values() if m.state == "streaming"]

    def growing(self) -> list[tuple[int, int]]:
        """The parts that grow."""
        messages = self.server.state.messages
        return [
            (n, part.sequence) for n in self.streaming() for part in messages[n].parts if can_append(part)
        ]

    def user_message(self, a: int, _: int) -> None:
        """A user message."""
        self.server.add("user", "visible", [TextPart(part_id="u1", sequence=1, text=TEXTS[a % 5])])

    def internal_message(self, a: int, _: int) -> None:
        """A message that only some readers see."""
        self.server.add("user", "internal", [TextPart(part_id="u1", sequence=1, text=TEXTS[a % 5])])

    def agent_message(self, a: int, _: int) -> None:
        """An agent message that streams, of a turn that runs."""
        name = f"t{a % 4}"
        turn = Turn(turn_id=name, revision=0, state="running", phase="streaming", phase_since=1, started_at=1)
        session = structs.replace(self.server.state.session, running_turn_id=name)
        self.server.publish(turns=[turn], session=session)
        self.server.add("agent", "visible", [], turn_id=name)

    def open_part(self, a: int, b: int) -> None:
        """A new part at the end of a streaming message."""
        if not self.streaming():
            return
        message = self.server.state.messages[self.streaming()[a % len(self.streaming())]]
        sequence, name = len(message.parts) + 1, f"p{self.server.version}"
        parts: list[Part] = [
            TextPart(part_id=name, sequence=sequence, text="", state="streaming"),
            ReasoningPart(part_id=name, sequence=sequence, text="so", state="streaming"),
            ToolPart(
                part_id=name, sequence=sequence, tool_call_id=name, tool_name="t", state="input-streaming"
            ),
        ]
        changed = structs.replace(message, parts=[*message.parts, parts[b % 3]])
        self.server.publish(messages=[changed], durable=b > 5)

    def grow(self, a: int, b: int) -> None:
        """A delta."""
        if self.growing():
            sequence, part = self.growing()[a % len(self.growing())]
            self.server.grow(sequence, part, TEXTS[b % 5])

    def close_part(self, a: int, b: int) -> None:
        """A part that grows no more, in a change that touches another message too."""
        if not self.growing():
            return
        sequence, index = self.growing()[a % len(self.growing())]
        message = self.server.state.messages[sequence]
        part = message.parts[index - 1]
        closed = structs.replace(part, state="ready" if isinstance(part, ToolPart) else "done")
        parts = [closed if p.sequence == index else p for p in message.parts]
        others = [m for m in self.server.state.messages.values() if m.sequence != sequence][: b % 2]
        self.server.publish(messages=[structs.replace(message, parts=parts), *others], durable=b > 5)

    def abandon_parts(self, a: int, b: int) -> None:
        """The newest parts leave a message."""
        if self.streaming():
            message = self.server.state.messages[self.streaming()[a % len(self.streaming())]]
            kept = message.parts[: b % (len(message.parts) + 1)]
            self.server.publish(messages=[structs.replace(message, parts=kept)])

    def end_message(self, a: int, _: int) -> None:
        """An agent message is done, and no turn runs."""
        if self.streaming():
            message = self.server.state.messages[self.streaming()[a % len(self.streaming())]]
            parts = [
                structs.replace(p, state="done") if isinstance(p, TextPart) else p for p in message.parts
            ]
            idle = structs.replace(self.server.state.session, running_turn_id=UNSET)
            self.server.publish(messages=[structs.replace(message, state="done", parts=parts)], session=idle)

    def rename(self, _: int, __: int) -> None:
        """Only the session changes."""
        title = f"v{self.server.version}"
        self.server.publish(session=structs.replace(self.server.state.session, title=title))

    def clear(self, a: int, _: int) -> None:
        """Messages no longer exist: mostly all of them, as ``sessions.clear`` does."""
        session = self.server.state.session
        first = max(session.first_sequence, session.message_count + 1 - a // 8)
        self.server.publish(session=structs.replace(session, first_sequence=first))

    def restart(self, a: int, _: int) -> None:
        """The server's process ends; the reader comes back with its cursor."""
        self.link.clear()
        self.server.restart(clean=a % 2 == 0)
        self.subscribe(None)

    def begin_epoch_below(self, a: int, _: int) -> None:
        """A new epoch begins below a subscription that stays: its first frame is a sync."""
        self.flush()
        before = self.server.version
        self.server.restart(clean=a % 2 == 0)
        self.link.append(Sync(CHANNEL, self.server.sync(self.cursor_at(before), internal=self.internal)))
        self.sent.append(self.link[-1])

    # what the link does

    def deliver(self, a: int, _: int) -> None:
        """Frames arrive, in order."""
        self.flush()
        for _count in range(a + 1):
            if self.link:
                self.take(self.link.pop(0))
                self.look()

    def lose(self, _: int, __: int) -> None:
        """The next frame never arrives."""
        self.flush()
        self.link = self.link[1:]

    def repeat(self, a: int, _: int) -> None:
        """An old frame arrives once more."""
        if self.sent:
            self.take(self.sent[-1 - a % len(self.sent)])

    def fall_behind(self, _: int, __: int) -> None:
        """What waits on the link becomes one sync, as for a slow reader."""
        self.flush()
        first = self.link[0] if self.link else None
        if first and not isinstance(first, Sync):
            since = first.from_version if isinstance(first, Skip) else first.version - 1
            self.link = [Sync(CHANNEL, self.server.sync(self.cursor_at(since), internal=self.internal))]
            self.sent += self.link

    def join_skips(self, _: int, __: int) -> None:
        """Skips in a row become one."""
        self.flush()
        joined: list[SessionFrame] = []
        for frame in self.link:
            last = joined[-1] if joined else None
            if isinstance(frame, Skip) and isinstance(last, Skip) and last.version == frame.from_version:
                joined[-1] = Skip(CHANNEL, last.from_version, frame.version)
            else:
                joined.append(frame)
        self.link = joined

    def cursor_at(self, version: int) -> Cursor:
        """The cursor of a reader that reached a version."""
        return Cursor(epoch=self.server.states[version].epoch, version=version, durable=0)

    # what the reader does

    def subscribe_with_cursor(self, _: int, __: int) -> None:
        """The reader reconnects."""
        self.subscribe(None)

    def subscribe_for_newest(self, a: int, _: int) -> None:
        """The reader asks for the newest messages alone."""
        self.subscribe(1 + a % 3)

    def subscribe_bare(self, _: int, __: int) -> None:
        """The reader asks for no messages; it will read pages."""
        self.subscribe(0)

    def ask_for_page(self, a: int, _: int) -> None:
        """A page is read on another path: it arrives before or after frames of its time."""
        self.replica.expect_page()
        before = self.replica.from_sequence
        self.pages.append(self.server.page(before, internal=self.internal, limit=1 + a % 3))

    def page_arrives(self, a: int, _: int) -> None:
        """One of the pages under way arrives."""
        if not self.pages:
            return
        page = self.pages.pop(a % len(self.pages))
        held = self.replica.messages(), self.replica.from_sequence, self.replica.has_more
        late = page.version < self.replica.version
        outcome = self.replica.merge_page(page)
        self.seen.add(f"page {outcome.value}{' late' if late else ''}{' empty' if not page.items else ''}")
        if outcome is not PageOutcome.MERGED:
            assert held == (self.replica.messages(), self.replica.from_sequence, self.replica.has_more)

    def store_and_load(self, _: int, __: int) -> None:
        """The reader's own process ends and comes back from its cache."""
        saved = self.replica.save()
        if saved is not None:
            self.replica = Replica.restore(SAVED.decode(msgspec.msgpack.encode(saved)))
            assert self.replica.stage is Stage.RESTORED
            self.pages.clear()
            self.subscribe(None)


@settings(max_examples=500)
@given(schedule=schedules, internal=st.booleans(), history=st.integers(0, 9))
@example(schedule=[(name, 3, 7) for name in WEIGHTS], internal=True, history=3)
def test_a_replica_is_the_session_at_its_version_whatever_the_link_does(
    schedule: list[Step],
    internal: bool,  # noqa: FBT001 - drawn by Hypothesis
    history: int,
) -> None:
    """At every moment, and the whole session after quiet."""
    conversation = Conversation(internal=internal, history=history)
    conversation.run(schedule)
    for what in conversation.seen:
        event(what)
