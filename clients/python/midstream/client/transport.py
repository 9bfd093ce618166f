"""One WebSocket connection: frames in, frames out. The only module that awaits a socket (SPEC 3).

It decides nothing: when to connect, what to answer and when to give up is said by others. It starts
one task, which writes, and no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http import HTTPStatus
from ipaddress import ip_address
from socket import gaierror
from typing import Literal
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidStatus,
    NegotiationError,
    SecurityError,
    WebSocketException,
)
from websockets.typing import Subprotocol

from midstream.client.deflate import Deflate
from midstream.client.errors import ConnectionRejected, IncompatibleServer, LimitExceeded, MidstreamError
from midstream.client.outgoing import Outgoing
from midstream.client.reconnect import comes_back
from midstream.protocol.chunks import ChunkAssembler, chunks
from midstream.protocol.codec import CODECS, Codec
from midstream.protocol.frames import Chunk, ServerFrame
from midstream.protocol.limits import DEFAULT_LIMITS

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Bytes of a frame from the server, chunks joined: one message may have 32 MiB, a sync several."""
CLOSE_S = 2.0
"""Seconds for the closing handshake; a peer that does not read would let it hang."""
PASSING_STATUS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
"""The 4xx answers that say: later."""
VERSION_MISMATCH = 4503


class LinkEnded(Exception):
    """A connection, or the attempt to make one, is over; ``final`` is the reason never to try again."""

    def __init__(self, why: str, final: MidstreamError | None = None, code: int | None = None) -> None:
        """Say why, in words for a person; ``code`` is that of the close frame, if one came."""
        super().__init__(why)
        self.code = code
        self.why = why
        self.final = final


class Transport:
    """A connection that is open at the WebSocket level; ``hello`` is the caller's to send."""

    def __init__(self, connection: ClientConnection, codec: Codec, max_frame_bytes: int) -> None:
        """Take over an open connection, and begin to write what is given."""
        self.chunk_bytes = DEFAULT_LIMITS.chunk_bytes
        """Frames above it are sent in chunks; the server's ``welcome`` may say otherwise."""
        self._connection = connection
        self._codec = codec
        self._assembler = ChunkAssembler(max_frame_bytes, codec)
        self._outgoing = Outgoing()
        self._next_n = 0
        self._work = asyncio.Event()
        self._writer = asyncio.get_running_loop().create_task(self._write(), name="midstream client writer")

    @classmethod
    async def open(cls, url: str, codec: Codec, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> Transport:
        """Connect. It takes as long as it takes: cancel it to give up.

        Raises:
            LinkEnded: there is no connection.

        """
        try:
            connection = await connect(
                url,
                subprotocols=[Subprotocol(codec.subprotocol)],
                compression=None,  # websockets' own takes 50 KiB, and time for frames of 20 bytes
                extensions=[Deflate()],
                ping_interval=None,  # the protocol has pings of its own, which no full buffer holds up
                open_timeout=None,
                close_timeout=CLOSE_S,
                max_size=max_frame_bytes,
                proxy=None if _is_loopback(url) else True,
            )
        except NegotiationError as error:
            problem = f"The server at {url} refused the subprotocol {codec.subprotocol}."
            raise LinkEnded(problem, IncompatibleServer(problem)) from error
        except InvalidStatus as error:
            raise _refused(url, error.response.status_code) from error
        except SecurityError as error:
            raise LinkEnded(
                str(error), IncompatibleServer(f"{url} redirects where it must not: {error}.")
            ) from error
        except (OSError, WebSocketException, EOFError) as error:
            raise LinkEnded(f"could not connect to {url}: {_reason(error)}") from error
        if connection.subprotocol not in CODECS:
            connection.transport.abort()
            problem = f"The server at {url} does not speak {codec.subprotocol}."
            raise LinkEnded(problem, IncompatibleServer(problem))
        return cls(connection, codec, max_frame_bytes)

    async def receive(self) -> ServerFrame | None:
        """Return the next frame, or None for something that is no frame to act on, but a sign of life.

        Raises:
            LinkEnded: the connection is over, or what came is not of this protocol.

        """
        try:
            data = await self._connection.recv(decode=False)
        except ConnectionClosed:
            if self._writer.done() and not self._writer.cancelled():
                self._writer.result()  # a failure of ours is the true cause, and must not vanish
            raise self._ending() from None
        try:
            frame = self._codec.decode_server_frame(data)
            if not isinstance(frame, Chunk):
                return frame
            joined = self._assembler.feed(frame)
            return None if joined is None else self._codec.decode_server_frame(joined)
        except MidstreamError as error:
            # what is too long now is too long the next time; anything else may be a passing fault
            final = error if isinstance(error, LimitExceeded) else None
            raise LinkEnded(f"the server sent what cannot be read: {error}", final) from error

    def send(self, payload: bytes, lane: str | None = None) -> None:
        """Write an encoded frame after the earlier ones of its lane; never waits."""
        self._outgoing.add(lane, self._messages(payload))
        self._work.set()

    def send_first(self, payload: bytes) -> None:
        """Write an encoded frame before all that wait: for pings and pongs."""
        self._outgoing.urgent(payload)
        self._work.set()

    def abort(self) -> None:
        """End the connection at once, without a word to the other end, which may not be there."""
        self._connection.transport.abort()

    async def close(self) -> None:
        """End the connection, with a closing handshake if the other end takes part; never raises."""
        self._writer.cancel()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._connection.close()
        except TimeoutError:
            pass
        finally:
            self.abort()
        await asyncio.wait({self._writer})

    def _messages(self, payload: bytes) -> Iterator[bytes]:
        if len(payload) <= self.chunk_bytes:
            yield payload
            return
        # the number is given when the first piece goes, because numbers must ascend on the wire
        n, self._next_n = self._next_n, self._next_n + 1
        yield from chunks(payload, n=n, chunk_bytes=self.chunk_bytes, codec=self._codec)

    async def _write(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                while (message := self._outgoing.take()) is not None:
                    await self._connection.send(message, text=not self._codec.binary)
        except ConnectionClosed:
            pass  # the reader sees it too, and says so
        except Exception:
            self.abort()
            raise

    def _ending(self) -> LinkEnded:
        code, reason = self._connection.close_code, self._connection.close_reason or ""
        if code is None or comes_back(code):
            why = f"the connection ended (code {code}{', ' + reason if reason else ''})"
            return LinkEnded(why, code=code)
        rejected = ConnectionRejected(code, reason)
        if code == VERSION_MISMATCH:
            return LinkEnded(
                str(rejected), IncompatibleServer(f"The server does not speak version 1: {reason}.")
            )
        return LinkEnded(str(rejected), rejected, code)


def _refused(url: str, status: int) -> LinkEnded:
    """Judge an HTTP answer that is no WebSocket: a server that is not ready, or an address that is wrong."""
    problem = f"The server at {url} answered the WebSocket handshake with HTTP status {status}."
    later = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in PASSING_STATUS
    return LinkEnded(problem, None if later else IncompatibleServer(problem))


def _reason(error: Exception) -> str:
    """Say in words what a person can act on; for all else, what the system says."""
    match error:
        case ConnectionRefusedError():
            return "nothing listens there"
        case gaierror():
            return "no host has this name"
        case _:
            return str(error) or type(error).__name__


def _is_loopback(url: str) -> bool:
    """Say whether the URL names this machine, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


Encoding = Literal["msgpack", "json"]


def codec_named(encoding: Encoding) -> Codec:
    """Return the codec of this name."""
    for codec in CODECS.values():
        if codec.name == encoding:
            return codec
    raise ValueError(f"encoding is {encoding!r}, but must be 'msgpack' or 'json'")
