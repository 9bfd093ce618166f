"""A client by hand whose calls go on to a registry."""

from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.frames import Call, ErrorFrame
from midstream.protocol.limits import Limits
from midstream.server.connections.calls import Calls
from midstream.server.connections.effects import Dispatch
from midstream.server.sessions.commands import Answer
from tests.server.connections.client import ByHand
from tests.server.connections.registry import Notes


class Caller(ByHand):
    """A client whose calls go on to a registry that only takes notes."""

    def __init__(self, codec: Codec = MSGPACK, *, limits: Limits | None = None) -> None:
        """Open a connection."""
        super().__init__(codec, limits=limits)
        self.registry = Notes()
        self.calls = Calls(self.registry, limits or Limits(), None)

    def make(self, call_id: int, method: str, **params: object) -> None:
        """Make a call."""
        (effect,) = self.call(call_id, method, **params)
        assert isinstance(effect, Dispatch)
        self.begin(effect.call)

    def begin(self, call: Call) -> None:
        """Carry out a call that was let in."""

        def reply(answer: Answer) -> None:
            self.connection.answer(call.id, answer, now=self.clock.now())

        self.calls.begin(self.connection, call, reply, lambda: None)

    def refusal(self, method: str, **params: object) -> ErrorFrame:
        """Make a call that is refused before any session hears of it."""
        self.make(1, method, **params)
        assert self.registry.posted == []
        return self.error()
