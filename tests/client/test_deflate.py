"""The client's side of permessage-deflate: no context is kept, and short messages go as they are."""

import random

import pytest
from websockets.exceptions import NegotiationError
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode

from midstream.client.deflate import LEAST_BYTES, Deflate

LONG = b"the same again and again, " * 100


def test_no_context_is_kept_in_either_direction() -> None:
    """The client asks for it, and refuses a server that would keep one."""
    params = [("server_no_context_takeover", None), ("client_no_context_takeover", None)]
    assert Deflate().get_request_params() == params
    agreed = Deflate().process_response_params(params, [])
    assert agreed.remote_no_context_takeover
    assert agreed.local_no_context_takeover
    with pytest.raises(NegotiationError):
        Deflate().process_response_params([("client_no_context_takeover", None)], [])


@pytest.mark.parametrize(
    ("payload", "shrinks"),
    [
        (b"", False),
        (LONG[:LEAST_BYTES], False),
        (LONG[: LEAST_BYTES + 1], True),
        (random.Random(1).randbytes(5_000), False),
        (LONG, True),
    ],
    ids=["empty", "short", "just long enough", "random", "long"],
)
def test_a_message_is_compressed_where_that_makes_it_shorter(payload: bytes, *, shrinks: bool) -> None:
    """Any server reads it, twice over."""
    client = Deflate().process_response_params([("server_no_context_takeover", None)], [])
    _, server = ServerPerMessageDeflateFactory().process_request_params(Deflate().get_request_params(), [])
    for _ in range(2):
        sent = client.encode(Frame(Opcode.BINARY, payload))
        assert sent.rsv1 is shrinks
        assert (len(sent.data) < len(payload)) is shrinks
        assert bytes(server.decode(sent).data) == payload
