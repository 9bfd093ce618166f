"""Laws of hostile input: it gets an error or an end, changes nothing, and disturbs nobody."""

import asyncio
import secrets
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame as WebSocketFrame
from websockets.frames import Opcode

from midstream.protocol.calls import PARAMS
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import ErrorFrame, Result
from midstream.protocol.limits import Limits
from midstream.server.config import Config
from midstream.server.connections.effects import Dispatch
from midstream.server.connections.websocket import ANSWER_BUFFER_BYTES
from midstream.server.sessions.commands import Command
from tests.server.connections.caller import Caller
from tests.server.connections.client import ByHand
from tests.server.connections.registry import Notes
from tests.server.connections.serving import client_of, serving


def nested(depth: int) -> list[object]:
    """Return lists in lists."""
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def signal(data: object) -> bytes:
    """Return a call with this value in it."""
    return MSGPACK.encode(["call", 1, "signal", {"session_id": "s", "name": "n", "data": data}])


def text(data: str) -> str:
    """Return a call in JSON with this value in it."""
    return f'["call",1,"signal",{{"session_id":"s","name":"n","data":{data}}}]'


def deep(depth: int, *, json: bool) -> bytes:
    """Return a call whose params are lists in lists, written by hand because no encoder goes so deep."""
    if json:
        return b'["call",1,"signal",' + b"[" * depth + b"]" * depth + b"]"
    return b"\x94\xa4call\x01\xa6signal" + b"\x91" * (depth - 1) + b"\x90"


NO_CONTENT: dict[str, object] = {"session_id": "s", "message_id": "m", "parts": []}
HOSTILE: list[tuple[str, bytes, str | None]] = [
    ("unknown tag", MSGPACK.encode(["shout", 1]), "unknown_frame"),
    ("unknown method", MSGPACK.encode(["call", 1, "shout", {"session_id": "s"}]), "unknown_method"),
    ("id as text", MSGPACK.encode(["call", "1", "turn", {"session_id": "s"}]), "invalid"),
    ("params as list", MSGPACK.encode(["call", 1, "turn", ["s"]]), "invalid"),
    ("session as number", MSGPACK.encode(["call", 1, "turn", {"session_id": 1}]), "invalid"),
    ("not a number", signal(float("nan")), "invalid"),
    ("infinity", signal(float("-inf")), "invalid"),
    ("2^53", signal(2**53), "invalid"),
    ("2^64-1", signal(2**64 - 1), "invalid"),
    ("65 levels", signal(nested(63)), "invalid"),
    ("100,000 levels", deep(100_000, json=False), "invalid"),
    ("bytes", signal(b"x"), "invalid"),
    ("key twice", b"\x94\xa4call\x01\xa4turn\x82" + b"\xaasession_id\xa1a" * 2, "invalid"),
    ("broken UTF-8", b"\x94\xa4call\x01\xa4turn\x81\xaasession_id\xa1\xff", "invalid"),
    ("page limit 0", MSGPACK.encode(["call", 1, "messages", {"session_id": "s", "limit": 0}]), "invalid"),
    ("page limit 201", MSGPACK.encode(["call", 1, "messages", {"session_id": "s", "limit": 201}]), "invalid"),
    ("no content", MSGPACK.encode(["call", 1, "prompt", NO_CONTENT]), "invalid"),
    ("broken msgpack", b"\x94\xa4call\x01\xa4tu", "malformed"),
    ("a map", MSGPACK.encode({"call": 1}), "malformed"),
    ("a number", b"\x01", "malformed"),
    ("100,000 levels of frame", b"\x91" * 100_000, "malformed"),
    ("a promise of 4 GB", b"\xdd\xff\xff\xff\xff\xa4call", "malformed"),
    ("a giant chunk id", MSGPACK.encode(["chunk", 2**60, True, b"x"]), "malformed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "code"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
async def test_hostile_frames_get_an_error_with_a_stable_code_and_change_nothing(
    message: bytes, code: str
) -> None:
    """The next call is answered: of the same connection, or, after broken framing, of the next one."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener:
        async with client_of(listener) as client:
            await client.websocket.send(message)
            tag, _, error = await client.receive()
            assert tag == "error"
            assert isinstance(error, dict)
            assert error["code"] == code
            assert error["message"]
            assert registry.posted == []
            if code == "malformed":
                assert (await client.closed())[0] == 4500
            else:
                await client.send("call", 2, "turn", {"session_id": "s"})
                assert (await client.receive())[:2] == ["result", 2]
        async with client_of(listener) as other:
            await other.send("call", 3, "turn", {"session_id": "s"})
            assert (await other.receive())[:2] == ["result", 3]


HOSTILE_TEXT: list[tuple[str, str, str]] = [
    ("lone surrogate", text('"\\ud800"'), "invalid"),
    ("half a pair as key", text('{"\\udc00":1}'), "invalid"),
    ("100,000 levels", deep(100_000, json=True).decode(), "invalid"),
    ("a big integer", text("9" * 400), "invalid"),
    ("a big exponent", text("1e999"), "invalid"),
    ("key twice", '["call",1,"turn",{"session_id":"a","session_id":"b"}]', "invalid"),
    ("NaN", text("NaN"), "invalid"),
    ("cut off", '["call",1,"turn",{"session_id":"s"', "malformed"),
    ("nothing", "", "malformed"),
    ("a text", '"call"', "malformed"),
    ("two frames", '["ping",1]["ping",2]', "malformed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "code"), [case[1:] for case in HOSTILE_TEXT], ids=[case[0] for case in HOSTILE_TEXT]
)
async def test_hostile_text_gets_an_error_with_a_stable_code_and_changes_nothing(
    message: str, code: str
) -> None:
    """The same law in JSON."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener, JSON) as client:
        await client.websocket.send(message)
        tag, _, error = await client.receive()
        assert tag == "error"
        assert isinstance(error, dict)
        assert error["code"] == code
        assert registry.posted == []


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (["call", 1, "turn", {"session_id": "s"}], 4501),
        (["hello", 2, None, {"client": "from the future"}], 4503),
        (["hello", 1, None, {"client": "x" * 9_000}], 4501),
    ],
)
async def test_a_connection_without_a_good_hello_is_closed_for_good(frame: list[object], code: int) -> None:
    """The client sees the code and the reason, so it does not come back."""
    async with serving(Notes()) as listener, client_of(listener, hello=False) as client:
        await client.send(*frame)
        closed, reason = await client.closed()
        assert closed == code
        assert reason


ENDLESS = ["chunk", 0, False, b"x" * 64_000]


async def test_a_giant_stream_of_chunks_is_refused_once_and_not_held() -> None:
    """64 MB of chunks without a last one: one error, and the connection goes on."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as client:
        for _ in range(1_000):
            await client.send(*ENDLESS)
        error = await client.receive()
        assert error[0] == "error"
        await client.send("call", 2, "turn", {"session_id": "s"})
        assert (await client.receive())[:2] == ["result", 2]


async def test_long_messages_in_a_row_are_taken_with_turns_for_others_between() -> None:
    """To read one may take a while, and all that one read from the kernel brings would hold up everybody."""
    turns = Turns()
    async with serving(turns) as listener, client_of(listener) as client:
        for number in range(18):
            parts = [{"type": "text", "text": "x" * 40_000}]
            await client.send(
                "call", number, "prompt", {"session_id": "s", "message_id": f"m{number}", "parts": parts}
            )
        await turns.until_posted(18)
    assert max(turns.posts.values()) <= 2


class Turns(Notes):
    """A registry that notes how many commands came in each turn of the event loop."""

    def __init__(self) -> None:
        """Count turns from here on."""
        super().__init__()
        self.posts: dict[int, int] = {}
        self._turn = 0
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self._turn += 1
        if len(self.posted) < 18:
            self._loop.call_soon(self._next)

    def post(self, session_id: str, command: Command) -> None:
        """Note a command, and the turn in which it came."""
        self.posts[self._turn] = self.posts.get(self._turn, 0) + 1
        super().post(session_id, command)


async def test_a_frame_above_the_limit_gets_an_error_and_one_far_above_ends_the_connection() -> None:
    """Nobody needs a message that is much longer than a frame may be: long frames come in chunks."""
    config = Config(limits=Limits(frame_bytes=100_000))
    async with serving(Notes(at_once=True), config) as listener, client_of(listener) as client:
        await client.websocket.send(b"x" * 100_001)
        tag, _, error = await client.receive()
        assert tag == "error"
        assert isinstance(error, dict)
        assert error["details"]["limit"] == "frame_bytes"
        await client.websocket.send(b"x" * 1_000_000)
        assert (await client.closed())[0] == 1009


async def test_pings_of_websocket_itself_that_nobody_reads_the_pongs_of_end_the_connection() -> None:
    """What the library answers by itself is bounded too."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as client:
        await client.send("call", 1, "subscribe", {"session_id": "s1"})
        await client.receive_tag("result")
        websocket = client.websocket
        websocket.transport.pause_reading()
        ping = WebSocketFrame(Opcode.PING, b"x" * 125).serialize(mask=True)
        sent = 0
        while not websocket.transport.is_closing():
            websocket.transport.write(ping * 1_000)
            sent += 125 * 1_000
            with suppress(OSError):
                await websocket.drain()
            assert sent < 100 * ANSWER_BUFFER_BYTES
        await registry.until_left(1)


@pytest.mark.parametrize(
    "frame", [["x" * 900_000], ["call", 1, "x" * 900_000, {"session_id": "s"}]], ids=["tag", "method"]
)
async def test_an_error_does_not_repeat_a_megabyte(frame: list[object]) -> None:
    """A long unknown name is cut short in the answer."""
    async with serving(Notes()) as listener, client_of(listener) as client:
        await client.send(*frame)
        message = await client.websocket.recv()
        assert b"unknown" in bytes(message)  # type: ignore[arg-type]  # it is bytes on this subprotocol
        assert len(message) < 5_000


@given(data=st.binary(max_size=200), codec=st.sampled_from([MSGPACK, JSON]))
def test_no_bytes_make_a_connection_fail(data: bytes, codec: Codec) -> None:
    """Whatever comes, it is an effect or a frame, never an exception."""
    ByHand(codec, hello=False).send_bytes(data)
    ByHand(codec).send_bytes(data)


METHODS = ["subscribe", "messages", "prompt", "stop", "respond", "verify", "signal", "sessions.create", "x"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["session_id", "message_id", "parts", "type", "text", "limit", "cursor", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    method=st.sampled_from(METHODS),
    params=VALUES,
    flips=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=3),
)
def test_no_call_makes_a_connection_fail(method: str, params: object, flips: list[tuple[int, int]]) -> None:
    """A call of any params, some bytes overwritten, is refused or reaches a session in the right types."""
    data = bytearray(MSGPACK.encode(["call", 1, method, params]))
    for at, value in flips:
        data[at % len(data)] = value
    caller = Caller()
    for effect in caller.send_bytes(bytes(data)):
        if isinstance(effect, Dispatch):
            caller.begin(effect.call)
    answered = [frame for frame in caller.read() if isinstance(frame, (ErrorFrame, Result))]
    for _, command in caller.registry.posted:
        assert type(command.params) is PARAMS[command.method]
    assert len(answered) + len(caller.registry.posted) <= 1


async def test_random_noise_over_a_socket_ends_that_connection_alone() -> None:
    """A hundred connections of noise, and the one that talks sense is answered."""
    registry = Notes(at_once=True)
    async with serving(registry) as listener, client_of(listener) as good:
        for _ in range(100):
            async with client_of(listener) as noisy:
                await noisy.websocket.send(b"\xc1" + secrets.token_bytes(50))
                assert (await noisy.closed())[0] == 4500
        await good.send("call", 1, "turn", {"session_id": "s"})
        assert (await good.receive())[:2] == ["result", 1]
