"""A client that is driven frame by frame, and holds everything that comes against SPEC.md."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from midstream.conformance.outcome import Failed
from midstream.conformance.servers.book import Book, CallRefused
from midstream.conformance.servers.frame import Frame, Map, Plain, read, short
from midstream.conformance.servers.judging import check_error
from midstream.conformance.servers.ledger import Ledger
from midstream.conformance.servers.opening import PATIENCE
from midstream.conformance.servers.pieces import Pieces
from midstream.conformance.servers.subscription import Subscription
from midstream.protocol.chunks import chunks
from midstream.protocol.codec import Codec
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.merge import Replica


class Peer:
    """One connection to the server under test. Pings are answered; what breaks a rule ends the next await.

    Attributes:
        welcome: the information of `welcome`.
        frames: all frames that came, joined from their chunks, in order.
        subscriptions: by session id.
        silent: answer no pings.
        closed: resolved with the close code; None where there was no close frame.
    """

    def __init__(
        self, socket: ClientConnection, codec: Codec, ledger: Ledger, log: list[str], name: str
    ) -> None:
        """Take over an open WebSocket; `open_peer` makes one."""
        self.codec = codec
        self.welcome: Map = {}
        self.frames: list[Frame] = []
        self.subscriptions: dict[str, Subscription] = {}
        self.silent = False
        self.closed: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.faults: list[Failed] = []
        self._socket = socket
        self._ledger = ledger
        self._log = log
        self._name = name
        self._pieces = Pieces(codec)
        self._book = Book(codec, ledger)
        self._nonces: set[int] = set()
        self._next_chunk = 1
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name=f"reads for {name}")

    # What is sent

    async def send(self, *frame: object) -> None:
        """Send a frame, in chunks where it is long."""
        self._note("→", frame)
        data = self.codec.encode(list(frame))
        limit = self.limit("chunk_bytes")
        if len(data) <= limit:
            await self._send(data)
            return
        for piece in chunks(data, n=self._next_chunk, chunk_bytes=limit, codec=self.codec):
            await self._send(piece)
        self._next_chunk += 1

    async def send_raw(self, message: bytes | str) -> None:
        """Send a WebSocket message as it stands."""
        self._note("→", repr(message[:200]))
        with suppress(ConnectionClosed):
            await self._socket.send(message)

    async def hello(self, token: str | None = None, version: int = 1) -> Map:
        """Say hello, and return the information of `welcome`."""
        await self.send("hello", version, token, {"name": "midstream conform", "version": "1"})
        frame = await self.until(lambda one: one.tag == "welcome", "welcome")
        self.welcome = frame.plain[1]
        return self.welcome

    async def begin(self, method: str, /, **params: Any) -> int:  # noqa: ANN401  # of the protocol
        """Send a call, and return its id; `answer` waits for it."""
        id = self._book.add(method, params)
        if method == "unsubscribe":  # from the moment of sending (4.2)
            self.subscriptions.pop(params["session_id"], None)
        await self.send("call", id, method, params)
        return id

    def expect_answer(self, id: int, method: str, session_id: str = "") -> None:
        """Say that a call with this id is sent as raw bytes."""
        self._book.calls[id] = (method, {"session_id": session_id} if session_id else {}, None)

    def expect_pong(self, nonce: int) -> None:
        """Say that a ping with this nonce is sent by hand."""
        self._nonces.add(nonce)

    @property
    def joined(self) -> int:
        """How many frames came in chunks."""
        return self._pieces.joined

    async def answer(self, id: int) -> Map:
        """Wait for the answer of a call.

        Raises:
            CallRefused: it is an error.

        """
        method, params, _ = self._book.calls[id]
        await self._wait(lambda: id in self._book.answers, f"an answer to {method} {short(params)}")
        frame = self._book.answers[id]
        if frame[0] == "error":
            raise CallRefused(method, params, frame[2])
        return cast("Map", frame[2])

    async def call(self, method: str, /, **params: Any) -> Map:  # noqa: ANN401  # of the protocol
        """Call, and return the result."""
        return await self.answer(await self.begin(method, **params))

    async def refused(self, code: str, method: str, params: Map, /, **details: object) -> Map:
        """Call what must be refused, by this code and at least these details; return the error."""
        id = await self.begin(method, **params)
        try:
            result = await self.answer(id)
        except CallRefused as refusal:
            check_error(refusal.info, code, details, f"{method} {short(params)}")
            return refusal.info
        raise Failed(f"{method} must be refused", expected={"code": code, **details}, seen=result)

    async def subscribe(
        self,
        session_id: str,
        *,
        replica: Replica | None = None,
        **params: Any,  # noqa: ANN401  # of the protocol
    ) -> Subscription:
        """Subscribe, with the cursor of a replica if one is given, and follow from there."""
        return await self.subscribed(await self.begin_subscribe(session_id, replica=replica, **params))

    async def begin_subscribe(
        self,
        session_id: str,
        *,
        replica: Replica | None = None,
        **params: Any,  # noqa: ANN401  # of the protocol
    ) -> int:
        """Send a `subscribe`; frames of the session are ignored until its answer (4.2)."""
        internal = bool(params.get("include_internal"))
        cursor = None if replica is None else replica.cursor()
        if cursor is not None and "cursor" not in params:
            params["cursor"] = msgspec.to_builtins(cursor)
        follow = replica or Replica(session_id, include_internal=internal)
        subscription = Subscription(session_id, follow, self._ledger, paced="pace_ms" in params)
        params["session_id"] = session_id
        id = self._book.add("subscribe", params, subscription)
        self.subscriptions.pop(session_id, None)
        await self.send("call", id, "subscribe", params)
        return id

    async def subscribed(self, id: int) -> Subscription:
        """Wait for the answer of a `subscribe` that was begun."""
        await self.answer(id)
        return cast("Subscription", self._book.calls[id][2])

    async def ping(self) -> Map:
        """Ask whether the server is there, and wait until it says so: all that it sent before has come."""
        nonce = 1_000_000 + len(self._nonces)
        self._nonces.add(nonce)
        await self.send("ping", nonce)
        frame = await self.until(lambda one: one.tag == "pong" and one.plain[1] == nonce, f"pong {nonce}")
        return {"time": frame.plain[2]}

    # What comes

    def limit(self, name: str) -> int:
        """Return a limit as `welcome` told it, or its default."""
        told = self.welcome.get("limits", {}).get(name)
        return int(told if told is not None else getattr(DEFAULT_LIMITS, name))

    @property
    def heartbeat(self) -> float:
        """The heartbeat in seconds."""
        return float(self.welcome["heartbeat_ms"]) / 1000

    async def until(
        self, fits: Callable[[Frame], bool], what: str, *, since: int = 0, seconds: float = PATIENCE
    ) -> Frame:
        """Wait for the first frame, of those from ``since`` on, that fits."""
        looked, found = since, list[Frame]()

        def come() -> bool:
            nonlocal looked
            while looked < len(self.frames) and not found:
                if fits(self.frames[looked]):
                    found.append(self.frames[looked])
                looked += 1
            return bool(found)

        await self._wait(come, what, seconds)
        return found[0]

    async def so(self, fact: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait until something that came has made a fact true."""
        await self._wait(fact, what, seconds)

    async def ended(self, seconds: float = PATIENCE) -> int | None:
        """Wait for the end of the connection, and return its close code; None without a close frame."""
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self.closed)
        except TimeoutError:
            raise Failed(
                "the server did not end the connection", expected="its end", seen=self._recent()
            ) from None

    def check(self) -> None:
        """Fail where something that came broke a rule."""
        if self.faults:
            raise self.faults[0]

    async def close(self) -> None:
        """Close in good order."""
        with suppress(Exception):
            async with asyncio.timeout(1):
                await self._socket.close()
        self._socket.transport.abort()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def cut(self) -> None:
        """End the connection without a word."""
        self._socket.transport.abort()

    # The rest is its own

    async def _send(self, data: bytes) -> None:
        with suppress(ConnectionClosed):
            await self._socket.send(data if self.codec.binary else data.decode())

    async def _wait(self, fact: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        until = time.monotonic() + seconds
        while True:
            self.check()
            if fact():
                return
            if self.closed.done():
                raise Failed(
                    f"the connection ended ({self.closed.result()}) before {what}",
                    expected=what,
                    seen=self._recent(),
                )
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await self._news.wait()
            except TimeoutError:
                raise Failed(
                    f"nothing came within {seconds:g} s", expected=what, seen=self._recent()
                ) from None

    def _recent(self) -> list[str]:
        return [short(frame.plain) for frame in self.frames[-4:]]

    def _note(self, arrow: str, frame: object) -> None:
        self._log.append(f"{self._name} {arrow} {frame if isinstance(frame, str) else short(frame)}")

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                self._guard(message)
        except (WebSocketException, OSError):
            pass
        finally:
            received = self._socket.protocol.close_rcvd
            if not self.closed.done():
                self.closed.set_result(None if received is None else int(received.code))
                self._note("←", f"the end: {self.closed.result()}")
            self._tell()

    def _guard(self, message: bytes | str) -> None:
        try:
            self._take(message)
        except Failed as failed:
            self.faults.append(failed)
        except Exception as error:  # noqa: BLE001  # the reader must go on, and the case must hear of it
            self.faults.append(Failed(f"what came cannot be judged: {error!r}", seen=repr(message[:400])))
        self._tell()

    def _take(self, message: bytes | str) -> None:
        if isinstance(message, str) is self.codec.binary:
            raise Failed(
                "a message of the other kind came (3.1)", expected=self.codec.name, seen=message[:100]
            )
        data = message.encode() if isinstance(message, str) else message
        if len(data) > self.limit("chunk_bytes"):
            raise Failed(
                "a message is longer than chunk_bytes (3.3)",
                expected=self.limit("chunk_bytes"),
                seen=len(data),
            )
        frame = self._pieces.feed(read(data, self.codec), self._session_of)
        if frame is None:
            return
        self._note("←", frame.plain)
        self.frames.append(frame)
        self._dispatch(frame)

    def _dispatch(self, frame: Frame) -> None:
        plain = frame.plain
        if frame.tag == "ping" and not self.silent:
            self._answer_soon(plain[1])
        elif frame.tag == "pong" and plain[1] not in self._nonces:
            raise Failed("a pong that answers no ping (3.9)", expected=self._nonces, seen=plain)
        elif frame.tag == "result" or (frame.tag == "error" and plain[1] is not None):
            self._book.take(plain, self.subscriptions)
        else:
            subscription = self._subscribed(plain)
            if subscription is None:
                return
            if frame.tag == "closed":
                subscription.closed = plain
            elif frame.tag != "signal":
                subscription.take(frame)

    def _subscribed(self, plain: Plain) -> Subscription | None:
        channel = _channel(plain)
        for subscription in self.subscriptions.values():
            if channel is not None and subscription.channel == channel:
                return subscription
        return None

    def _session_of(self, plain: Plain) -> str | None:
        """Say of which session a frame is, for the order of chunks."""
        if plain[0] in {"result", "error"}:
            call = self._book.calls.get(plain[1])
            return None if call is None else call[1].get("session_id")
        subscription = self._subscribed(plain)
        return None if subscription is None else subscription.session_id

    def _answer_soon(self, nonce: int) -> None:
        task = asyncio.get_running_loop().create_task(self.send("pong", nonce, int(time.time() * 1000)))
        task.add_done_callback(lambda one: one.cancelled() or one.exception())


def _channel(plain: Plain) -> int | None:
    if isinstance(plain[0], int):
        return plain[0]
    return plain[1] if plain[0] in {"d", "change", "skip", "sync", "mark", "closed", "signal"} else None
