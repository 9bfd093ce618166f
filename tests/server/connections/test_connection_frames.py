"""Laws of what a client may send: hello first, good frames, whole chunks."""

import pytest

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import (
    ErrorFrame,
    Hello,
    Ping,
    Pong,
    Welcome,
)
from midstream.protocol.limits import Limits
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Close, Dispatch
from midstream.server.connections.rates import Subjects
from tests.server.connections.client import ByHand, chunked, ending
from tests.server.connections.readers import Frame

EMPTY: dict[str, object] = {}
both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


# Hello


@both_codecs
def test_hello_is_answered_by_welcome(codec: Codec) -> None:
    """The client learns who it is, what the limits are, and the server's time."""
    client = ByHand(codec, hello=False)
    assert client.send(Hello(1, None, {"client": "test"})) == []
    (welcome,) = client.read()
    assert isinstance(welcome, Welcome)
    assert welcome.info.connection_id == "connection_1"
    assert welcome.info.time == client.clock.wall_ms()
    assert welcome.info.heartbeat_ms == 15_000
    assert welcome.info.limits == Limits()
    assert welcome.info.subject == "local"
    assert set(welcome.info.scopes) == {"read", "write", "internal", "agent", "admin"}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (MSGPACK.encode(["hello", 2, None, EMPTY]), CloseCode.UNSUPPORTED_VERSION),
        (MSGPACK.encode(["hello", 0, None, EMPTY]), CloseCode.UNSUPPORTED_VERSION),
        (MSGPACK.encode(["hello", "1", None, EMPTY]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["hello", 1]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["hello", 1, None, {"client": "x" * 9_000}]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["ping", 1]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["call", 1, "messages", EMPTY]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["chunk", 0, True, b"x"]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode(["greetings", 1]), CloseCode.HELLO_EXPECTED),
        (MSGPACK.encode({"hello": 1}), CloseCode.BAD_FRAME),
        (b"\xc1\xff\x00", CloseCode.BAD_FRAME),
        (b"", CloseCode.BAD_FRAME),
    ],
)
def test_anything_but_a_good_hello_first_closes_for_good(message: bytes, code: CloseCode) -> None:
    """No session is ever asked for by a connection that did not say hello."""
    client = ByHand(hello=False)
    effects = client.send_bytes(message)
    assert isinstance(effects[0], Close)
    assert effects[0].code == code
    assert effects[0].reason
    assert effects[0].code >= 4500
    assert client.send(Hello(1, None, {})) == []
    assert not client.connection.is_open


def test_hello_comes_in_time_or_not_at_all() -> None:
    """After ten seconds without hello the connection is closed."""
    client = ByHand(hello=False)
    assert client.run_until(9.9) == []
    ((at, effect),) = client.run_until(60)
    assert at == pytest.approx(0.1)
    assert isinstance(effect, Close)
    assert effect.code == CloseCode.HELLO_TIMEOUT


def test_a_subject_has_at_most_so_many_connections() -> None:
    """One more is closed with a code of its own; when one is gone, the next may come."""
    subjects = Subjects(Limits(connections_per_subject=1))
    first = ByHand(subjects=subjects)
    second = ByHand(subjects=subjects, hello=False)
    assert ending(second.send(Hello(1, None, {}))).code == CloseCode.TOO_MANY_CONNECTIONS
    second.connection.lost()
    first.connection.lost()
    first.connection.lost()
    ByHand(subjects=subjects)
    third = ByHand(subjects=subjects, hello=False)
    assert ending(third.send(Hello(1, None, {}))).code == CloseCode.TOO_MANY_CONNECTIONS


def test_a_second_hello_is_refused_and_the_connection_lives() -> None:
    """It has no meaning, but it does no harm either."""
    client = ByHand()
    assert client.send(Hello(1, None, {})) == []
    error = client.error()
    assert (error.id, error.error.code) == (None, "invalid")
    assert client.connection.is_open


# Frames


@both_codecs
def test_a_ping_is_answered_by_a_pong_with_its_nonce_and_the_servers_time(codec: Codec) -> None:
    """Both ends may ask."""
    client = ByHand(codec)
    client.send(Ping(77))
    assert client.read() == [Pong(77, client.clock.wall_ms())]
    assert client.send(Pong(1, 2)) == []


WRONG: list[tuple[Frame, str, int | None]] = [
    (["shout", 1], "unknown_frame", None),
    (["ping"], "invalid", None),
    (["ping", -1], "invalid", None),
    (["ping", 2**53], "invalid", None),
    (["call", "1", "messages", EMPTY], "invalid", None),
    (["call", 2**53, "messages", EMPTY], "invalid", None),
    (["call", 5, 6, EMPTY], "invalid", 5),
    (["call", 5, "messages"], "invalid", 5),
    (["hello", 1, None, EMPTY], "invalid", None),
]


@pytest.mark.parametrize(("message", "code", "call_id"), WRONG)
@both_codecs
def test_a_wrong_frame_gets_an_error_and_the_connection_lives(
    codec: Codec, message: list[object], code: str, call_id: int | None
) -> None:
    """Unknown tags and wrong elements are refused by name; a call's id is given where it could be read."""
    client = ByHand(codec)
    assert client.send(message) == []
    error = client.error()
    assert (error.error.code, error.id) == (code, call_id)
    assert isinstance(client.call(1)[0], Dispatch)


@pytest.mark.parametrize(
    "message",
    [
        b"\xc1",
        b"\x93\xa4call\x01",
        b"",
        MSGPACK.encode({"call": 1}),
        MSGPACK.encode([1, 2]),
        b"\x91" * 100_000,
    ],
)
def test_broken_framing_gets_an_error_and_then_the_connection_ends(message: bytes) -> None:
    """Whoever sends no frames cannot be understood any more."""
    client = ByHand()
    end = ending(client.send_bytes(message))
    assert end.code == CloseCode.BAD_FRAME
    frame = client.outbox.codec.decode_server_frame(client.outbox.take(1)[0])
    assert isinstance(frame, ErrorFrame)
    assert frame.id is None
    assert frame.error.code == "malformed"


@pytest.mark.parametrize(("codec", "binary"), [(MSGPACK, False), (JSON, True)], ids=["text", "binary"])
def test_a_message_of_the_wrong_kind_is_broken_framing(codec: Codec, *, binary: bool) -> None:
    """Text on the binary subprotocol, and the other way round."""
    client = ByHand(codec)
    end = ending(client.send_bytes(codec.encode(["ping", 1]), binary=binary))
    assert end.code == CloseCode.BAD_FRAME


def test_a_frame_above_the_limit_is_refused_by_name() -> None:
    """The limit counts the message before it is decoded."""
    client = ByHand(limits=Limits(frame_bytes=1_000))
    assert client.send(["call", 1, "messages", {"x": "x" * 1_000}]) == []
    assert client.error().error.details["limit"] == "frame_bytes"
    assert client.connection.is_open


# Chunks


@both_codecs
def test_a_call_in_chunks_is_one_call(codec: Codec) -> None:
    """Pings and other calls may stand between its chunks."""
    client = ByHand(codec)
    payload = codec.encode(["call", 9, "prompt", {"text": 'é"𝄞' * 500}])
    pieces = chunked(codec, payload, 0, 300)
    assert len(pieces) > 3
    for piece in pieces[:-1]:
        assert client.send_bytes(piece) == []
        client.send(Ping(1))
        assert isinstance(client.read()[0], Pong)
    (effect,) = client.send_bytes(pieces[-1])
    assert isinstance(effect, Dispatch)
    assert (effect.call.id, effect.call.method) == (9, "prompt")


@both_codecs
def test_chunks_without_end_are_refused_and_held_no_longer(codec: Codec) -> None:
    """A giant stream of chunks gets one error, at the limit of a whole frame; the connection lives."""
    client = ByHand(codec, limits=Limits(frame_bytes=10_000))
    piece: object = b"x" * 1_000 if codec.binary else "x" * 1_000
    errors = 0
    for _ in range(1_000):
        assert client.send(["chunk", 0, False, piece]) == []
        errors += len(client.read())
    assert errors == 1
    assert isinstance(client.call(1)[0], Dispatch)


@pytest.mark.parametrize(
    "inner", [["hello", 1, None, EMPTY], ["ping", 1], ["chunk", 1, True, b"x"], ["what"]]
)
def test_only_a_call_comes_in_chunks(inner: list[object]) -> None:
    """Anything else that is joined is refused, and does nothing."""
    client = ByHand()
    (chunk,) = chunked(MSGPACK, MSGPACK.encode(inner), 0, 1_000)
    assert client.send_bytes(chunk) == []
    assert client.error().error.code in {"invalid", "unknown_frame"}


def test_chunks_that_join_to_no_frame_end_the_connection() -> None:
    """They are broken framing like any other message that is none."""
    client = ByHand()
    assert ending(client.send(["chunk", 0, True, b"\xc1"])).code == CloseCode.BAD_FRAME
    client = ByHand()
    assert ending(client.send(["chunk", 0, True, 5])).code == CloseCode.BAD_FRAME
