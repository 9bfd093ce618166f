"""A connection driven by hand, from the client's side, with a clock that a test moves."""

from midstream.protocol.calls import SubscribeParams, SubscribeResult
from midstream.protocol.codec import MSGPACK, Codec
from midstream.protocol.frames import Call, ErrorFrame, Hello, ServerFrame, Welcome
from midstream.protocol.limits import Limits
from midstream.server.connections.connection import Connection
from midstream.server.connections.effects import Abort, Close, Effect
from midstream.server.connections.hello import Settings
from midstream.server.connections.rates import Subjects
from midstream.server.connections.subscription import Subscription
from tests.clock import ManualClock
from tests.server.connections.readers import CHANNEL, outbox_of, read, sync

HEARTBEAT = 15.0


class ByHand:
    """One connection and its clock; everything the client sends or reads goes through here."""

    def __init__(
        self,
        codec: Codec = MSGPACK,
        *,
        limits: Limits | None = None,
        subjects: Subjects | None = None,
        hello: bool = True,
    ) -> None:
        """Open a connection, and say hello unless told not to."""
        self.clock = ManualClock()
        self.codec = codec
        self.outbox = outbox_of(codec)
        limits = limits or Limits()
        self.connection = Connection(
            "connection_1",
            self.outbox,
            Settings(server="midstream/test", limits=limits, heartbeat_seconds=HEARTBEAT, sync_seconds=60),
            subjects or Subjects(limits),
            now=self.clock.now(),
        )
        if hello:
            assert self.send(Hello(1, None, {})) == []
            (welcome,) = self.read()
            assert isinstance(welcome, Welcome)

    def send(self, frame: object) -> list[Effect]:
        """Send a frame."""
        return self.send_bytes(self.codec.encode(frame))

    def send_bytes(self, data: bytes, *, binary: bool | None = None) -> list[Effect]:
        """Send a WebSocket message, of the codec's kind unless told otherwise."""
        self.connection.on_bytes(self.clock.now())
        return self.connection.on_message(
            data,
            binary=self.codec.binary if binary is None else binary,
            now=self.clock.now(),
            wall_ms=self.clock.wall_ms(),
        )

    def call(self, call_id: int, method: str = "messages", **params: object) -> list[Effect]:
        """Send a call."""
        return self.send(Call(call_id, method, self.codec.raw(params)))

    def read(self) -> list[ServerFrame]:
        """Read all that waits, and tell the connection so."""
        frames = read(self.outbox)
        self.written()
        return frames

    def written(self, *, moved: int = 0, buffered: int = 0, paused: bool = False) -> list[Effect]:
        """Tell the connection that the outbox was emptied into a transport."""
        return self.connection.on_written(self.clock.now(), moved=moved, buffered=buffered, paused=paused)

    def error(self) -> ErrorFrame:
        """Read what waits, which is one error."""
        (frame,) = self.read()
        assert isinstance(frame, ErrorFrame)
        return frame

    def subscribed(self, session_id: str, *, call_id: int = 1_000, **params: int) -> Subscription:
        """Subscribe, as the calls do, and let the session answer."""
        self.call(call_id, "subscribe", session_id=session_id)
        asked = SubscribeParams(session_id=session_id, **params)  # type: ignore[arg-type]  # only integers
        self.connection.subscribe(call_id, asked)
        subscription = self.connection.expect(call_id, session_id, repeatable=True)
        assert subscription
        answer = SubscribeResult(channel=CHANNEL, sync=sync(10))
        assert self.connection.answer(call_id, answer, now=self.clock.now()) == []
        return subscription

    def fill(self) -> None:
        """Let more wait than the mark allows."""
        while not self.outbox.above_mark:
            self.outbox.put("other", self.codec.encode(["x", "x" * 100]))

    def run_until(self, seconds: float) -> list[tuple[float, Effect]]:
        """Let time pass, doing what is due at each deadline; return the effects and when they came."""
        start, done = self.clock.now(), list[tuple[float, Effect]]()
        while (deadline := self.connection.next_deadline(self.clock.now())) is not None:
            if deadline > start + seconds:
                break
            self.clock.advance(max(0, deadline - self.clock.now()))
            done += [
                (self.clock.now() - start, effect) for effect in self.connection.on_time(self.clock.now())
            ]
        self.clock.advance(max(0, start + seconds - self.clock.now()))
        return done


def ending(effects: list[Effect]) -> Close | Abort:
    """Return the one effect that ends a connection."""
    (end,) = [effect for effect in effects if isinstance(effect, (Close, Abort))]
    return end


def chunked(codec: Codec, payload: bytes, n: int, size: int) -> list[bytes]:
    """Return the chunk frames of a payload, as a client without our code would write them."""
    frames: list[bytes] = []
    text = payload if codec.binary else payload.decode()
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        frames.append(codec.encode(["chunk", n, start + size >= len(text), piece]))
    return frames
