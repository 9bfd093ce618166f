"""Every write enters once and in order, over any cuts of the connection and deaths of the server."""

from __future__ import annotations

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from midstream.protocol.agents import (
    AbsorbInputs,
    AddPart,
    BeginStep,
    EndStep,
    EndText,
    ReportError,
    Write,
    WriteResult,
)
from midstream.protocol.codec import MSGPACK
from midstream.protocol.errors import MidstreamError
from midstream.protocol.frames import Detached
from midstream.protocol.model import TextPart
from midstream.worker.attachment import AttachAgain, Attachment, Event, Over, Settled
from midstream.worker.ledger import Piece
from tests.worker.oracle import BAD, Oracle, is_bad, joined

WINDOW = 300
PARTS = st.sampled_from(["a", "b", BAD])
LIVE: st.SearchStrategy[Write] = st.one_of(
    st.just(BeginStep()),
    PARTS.map(lambda part: AddPart(part=TextPart(part_id=part, text="", state="streaming"))),
    st.builds(EndText, part_id=PARTS),
)
STORED: st.SearchStrategy[Write] = st.one_of(
    st.just(EndStep(step_id="s")),
    st.just(AbsorbInputs()),
    st.integers(1, 500).map(lambda size: ReportError(code="c", message="x" * size)),
)


class Conversation(RuleBasedStateMachine):
    """One worker and the oracle of a server, and what is on its way between them."""

    @initialize()
    def begin(self) -> None:
        """Attach for the first time."""
        self.oracle = Oracle(WINDOW)
        self.attachment = Attachment(MSGPACK, "s", "t")
        self.written: list[Write | Piece] = []
        self.way: deque[bytes] = deque()
        self.awaited: dict[int, Write] = {}
        self.events: list[Event] = []
        self.refusals = 0
        self.attach()

    # The agent

    @rule(write=LIVE)
    def write_live(self, write: Write) -> None:
        """Write what nobody waits for."""
        self.attachment.write(write)
        self.written.append(write)

    @rule(write=STORED)
    def write_stored(self, write: Write) -> None:
        """Write what is waited for."""
        n = self.attachment.write(write)
        assert n not in self.awaited
        self.awaited[n] = write
        self.written.append(write)

    @rule(
        part_id=PARTS, text=st.text("abc\u00e9\U0001f600", min_size=1, max_size=40), times=st.integers(1, 30)
    )
    def append(self, part_id: str, text: str, times: int) -> None:
        """Stream."""
        for _ in range(times):
            self.attachment.append(part_id, text)
            self.written.append(Piece(part_id, text))

    # The way

    @rule()
    def send(self) -> None:
        """Put on the way all that may go out."""
        while (payload := self.attachment.take()) is not None:
            self.oracle.sent(payload)
            self.way.append(payload)

    @precondition(lambda self: self.way)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Let some of it arrive."""
        for _ in range(data.draw(st.integers(1, len(self.way)))):
            payload = self.way.popleft()
            if self.oracle.channel is not None:
                self.oracle.take(payload)

    @precondition(lambda self: self.oracle.channel is not None)
    @rule()
    def acknowledge(self) -> None:
        """The server tells how far it is."""
        self.oracle.acknowledge()

    @precondition(lambda self: self.oracle.news)
    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        """Let some of the server's frames arrive."""
        for _ in range(data.draw(st.integers(1, len(self.oracle.news)))):
            frame = self.oracle.news.popleft()
            self.oracle.heard(frame)
            self._learn(self.attachment.frame(frame))
            if isinstance(frame, Detached):
                self.way.clear()
                self.attach()
                return

    @rule()
    def commit(self) -> None:
        """The server has all of it on disk."""
        self.oracle.commit()

    # What goes wrong

    @rule()
    def cut(self) -> None:
        """The connection is gone, and all that was on its way in it."""
        self.oracle.cut()
        self._reconnect()

    @rule()
    def restart(self) -> None:
        """The server dies; what was not on disk is gone."""
        self.oracle.restart()
        self._reconnect()

    @precondition(lambda self: self.oracle.channel is not None)
    @rule(code=st.sampled_from(["gap", "reload", "overloaded"]))
    def detach(self, code: str) -> None:
        """The server ends the attachment; the worker hears of it in its turn."""
        self.oracle.detach(code)

    def attach(self) -> None:
        """Attach, again."""
        self._learn(self.attachment.attached(self.oracle.attach(self.attachment.params())))

    @invariant()
    def nothing_is_given_up(self) -> None:
        """No event says that the turn is lost, and no write is refused that should not be."""
        assert not [event for event in self.events if isinstance(event, Over)]
        if self.attachment.refusal is not None:
            self.attachment.refusal = None
            self.refusals += 1
            assert any(is_bad(write) for write in self.written)

    def teardown(self) -> None:
        """At the end all of it is there, once and in order, and all that was waited for is settled."""
        if not hasattr(self, "oracle"):
            return
        self._quieten()
        assert joined(self.oracle.taken) == joined(self.written)
        settled = [event for event in self.events if isinstance(event, Settled)]
        assert sorted(event.n for event in settled) == sorted(self.awaited)
        for event in settled:
            assert _fits(self.awaited[event.n], event.n, event.result)
        assert self.attachment.has_room
        assert self.attachment.kept_bytes == 0
        bad = sum(is_bad(write) for write in joined(self.written) if not isinstance(write, Piece))
        assert self.refusals <= bad + sum(is_bad(one) for one in self.written if isinstance(one, Piece))

    def _quieten(self) -> None:
        for _ in range(10_000):
            self.send()
            while self.way:
                payload = self.way.popleft()
                if self.oracle.channel is not None:
                    self.oracle.take(payload)
            self.oracle.commit()
            if self.oracle.channel is not None:
                self.oracle.acknowledge()
            count = len(self.oracle.news)
            while self.oracle.news:
                frame = self.oracle.news.popleft()
                self.oracle.heard(frame)
                self._learn(self.attachment.frame(frame))
                if isinstance(frame, Detached):
                    self.way.clear()
                    self.attach()
                    count = 99
            self.nothing_is_given_up()
            if count <= 1 and self.attachment.kept_bytes == 0:
                return
        raise AssertionError("it never comes to rest")

    def _reconnect(self) -> None:
        self.way.clear()
        self.attachment.lost()
        self.attach()

    def _learn(self, events: list[Event]) -> None:
        assert [type(event) for event in events if isinstance(event, AttachAgain)] in ([], [AttachAgain])
        self.events += events


def _fits(write: Write, n: int, result: WriteResult | MidstreamError) -> bool:
    if isinstance(write, AbsorbInputs):
        return isinstance(result, WriteResult) and [one.sequence for one in result.messages] == [n]
    return result == WriteResult()


Conversation.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestEveryWriteEntersOnceAndInOrder = Conversation.TestCase
