"""Messages are framed as RFC 6455 says."""

import pytest
from websockets.frames import Frame, Opcode

from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.server.connections.websocket import sealer


@pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])
@pytest.mark.parametrize("length", [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000])
def test_a_sealed_message_is_the_frame_that_websockets_makes(codec: Codec, length: int) -> None:
    """At every length of the header."""
    opcode = Opcode.BINARY if codec.binary else Opcode.TEXT
    payload = b"x" * length
    assert sealer(codec)(payload) == Frame(opcode, payload).serialize(mask=False)
