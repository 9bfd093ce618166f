"""The one connection of a client, kept for as long as it is wanted (SPEC 10).

The shell around :class:`Reconnect`: it carries out what that decides, greets the server, answers
pings, and passes everything else on. One task for each attempt, one timer for the next deadline.
"""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from random import Random
from typing import Final, Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from midstream.client.clock import Clock
from midstream.client.credentials import RENEW_AGAIN_S, Credentials, Token, renew_after
from midstream.client.errors import IncompatibleServer, MidstreamError
from midstream.client.reconnect import DEFAULT_POLICY, Connect, Drop, Effect, Policy, Reconnect
from midstream.client.timers import Timer, Timers
from midstream.client.transport import MAX_FRAME_BYTES, LinkEnded, Transport
from midstream.protocol.calls import AuthParams, AuthResult
from midstream.protocol.codec import Codec
from midstream.protocol.frames import (
    Call,
    ErrorFrame,
    GoAway,
    Hello,
    Ping,
    Pong,
    Result,
    ServerFrame,
    Welcome,
    WelcomeInfo,
)
from midstream.protocol.limits import PROTOCOL_VERSION
from midstream.protocol.values import MAX_INTEGER

LinkState: TypeAlias = Literal["connecting", "live", "offline", "closed"]
"""``connecting``: an attempt is under way. ``live``: welcomed. ``offline``: waiting to try again."""

AUTH_ID: Final = MAX_INTEGER
"""The id of the link's own calls; those of its user count up from the other end."""
LEAST_HEARTBEAT_S = 0.1
"""A server that names a shorter heartbeat is not believed."""


class LinkUser(Protocol):
    """Who is told what happens on a link. None of these awaits or blocks."""

    def link_opened(self, transport: Transport, welcome: WelcomeInfo) -> None:
        """The server said welcome."""
        ...

    def link_frame(self, frame: ServerFrame) -> None:
        """A frame came."""
        ...

    def link_down(self, state: Literal["connecting", "offline"]) -> None:
        """There is no connection: one is being made, or it will be."""
        ...

    def link_ended(self, error: MidstreamError) -> None:
        """There will be no connection any more."""
        ...


class LinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect, and how."""

    url: str
    codec: Codec
    token: Token | None = None
    policy: Policy = DEFAULT_POLICY
    max_frame_bytes: int = MAX_FRAME_BYTES


class Link:
    """Connects, stays connected, and comes back."""

    def __init__(
        self, options: LinkOptions, user: LinkUser, *, clock: Clock, random: Random, timers: Timers
    ) -> None:
        """Do nothing until :meth:`start`."""
        self.problem: str | None = None
        """What ended the last connection or attempt; None once there is a connection."""
        self._options = options
        self._user = user
        self._clock = clock
        self._timers = timers
        self._core = Reconnect(random, options.policy)
        self._task: asyncio.Task[LinkEnded] | None = None
        self._transport: Transport | None = None
        self._dropped: str | None = None
        self._timer: Timer | None = None
        self._closing = False
        self._credentials = Credentials(options.token)
        self._renew_at: Timer | None = None
        self._renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect; of no effect the second time."""
        self._act(self._core.start(self._clock.now(), self._clock.wall_ms()))

    def abort(self) -> None:
        """End for good, without waiting; :meth:`close` waits."""
        self._closing = True
        self._core.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._stop_renewing()

    async def close(self) -> None:
        """End for good, and return when nothing runs any more."""
        self.abort()
        tasks = {task for task in (self._task, self._renewal) if task is not None}
        if tasks:
            await asyncio.wait(tasks)

    def _act(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Connect):
                self._user.link_down("connecting")
                self._dropped = None
                self._task = asyncio.get_running_loop().create_task(
                    self._attempt(), name="midstream client link"
                )
                self._task.add_done_callback(self._attempt_done)
            elif isinstance(effect, Drop):
                self._drop(effect.why)
            elif self._transport is not None:
                self._transport.send_first(self._options.codec.encode(Ping(effect.nonce)))
        self._arm()

    def _drop(self, why: str) -> None:
        self._dropped = why
        if self._transport is not None:
            self._transport.abort()
        elif self._task is not None:
            self._task.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._core.deadline
        if deadline is not None and not self._closing:
            self._timer = self._timers.later(deadline - self._clock.now(), self._poll)

    def _poll(self) -> None:
        self._act(self._core.poll(self._clock.now(), self._clock.wall_ms()))

    async def _attempt(self) -> LinkEnded:
        """Make one connection and read it to its end; return why it ended."""
        options = self._options
        try:
            token = await self._credentials.get()
        except Exception as error:  # noqa: BLE001 - the program's own; its text may hold what nobody should see
            return LinkEnded(f"no token was to be had: {type(error).__name__}")
        try:
            transport = await Transport.open(
                options.url, options.codec, max_frame_bytes=options.max_frame_bytes
            )
        except LinkEnded as ended:
            return ended
        self._transport = transport
        try:
            hello = Hello(PROTOCOL_VERSION, token, {"client": "midstream-python", "version": VERSION})
            transport.send(options.codec.encode(hello))
            self._welcomed(transport, await _welcome(transport))
            while True:
                self._received(transport, await transport.receive())
        except LinkEnded as ended:
            return ended
        finally:
            self._transport = None
            self._stop_renewing()
            await transport.close()

    def _welcomed(self, transport: Transport, welcome: WelcomeInfo) -> None:
        heartbeat_s = max(welcome.heartbeat_ms / 1000, LEAST_HEARTBEAT_S)
        transport.chunk_bytes = welcome.limits.chunk_bytes
        self._core.welcomed(self._clock.now(), heartbeat_s)
        self._arm()
        self.problem = None
        self._credentials.accepted()
        self._renew_later(welcome.token_ms)
        self._user.link_opened(transport, welcome)

    def _received(self, transport: Transport, frame: ServerFrame | None) -> None:
        self._core.received(self._clock.now())
        if isinstance(frame, Ping):
            pong = Pong(frame.nonce, self._clock.wall_ms())
            transport.send_first(self._options.codec.encode(pong))
        elif isinstance(frame, Pong):
            self._core.ponged(frame.nonce)
            self._arm()
        elif isinstance(frame, GoAway):
            self._core.goaway(self._clock.now(), frame.reconnect_after_ms / 1000)
            self._arm()
        elif isinstance(frame, (Result, ErrorFrame)) and frame.id == AUTH_ID:
            self._renewed(frame)
        elif frame is not None:
            self._user.link_frame(frame)

    # The token

    def _renew_later(self, token_ms: int | UnsetType) -> None:
        if token_ms is not UNSET and self._credentials.is_renewable:
            self._renew_in(renew_after(token_ms / 1000))

    def _renew_in(self, seconds: float) -> None:
        self._renew_at = self._timers.later(seconds, self._renew)

    def _renew(self) -> None:
        self._renewal = asyncio.get_running_loop().create_task(
            self._give_new(), name="midstream client renewal"
        )

    async def _give_new(self) -> None:
        """Get a token and give it to the server, on the connection that there is."""
        try:
            token = await self._credentials.get()
        except Exception:  # noqa: BLE001 - the program's own; it may go better the next time
            self._renew_in(RENEW_AGAIN_S)
            return
        codec = self._options.codec
        if self._transport is not None and token is not None:
            params = codec.raw(AuthParams(token=token))
            self._transport.send(codec.encode(Call(AUTH_ID, "auth", params)))

    def _renewed(self, frame: Result | ErrorFrame) -> None:
        if isinstance(frame, ErrorFrame):
            self._renew_in(RENEW_AGAIN_S)
            return
        try:
            answer = cast("AuthResult", self._options.codec.decode_result("auth", frame.result))
        except MidstreamError:
            self._drop("the server's answer to auth cannot be read")
        else:
            self._renew_later(answer.token_ms)

    def _stop_renewing(self) -> None:
        if self._renew_at is not None:
            self._renew_at.cancel()
        if self._renewal is not None:
            self._renewal.cancel()

    def _attempt_done(self, task: asyncio.Task[LinkEnded]) -> None:
        # a done callback has nobody to raise to
        self._timers.run(partial(self._ended, task))

    def _ended(self, task: asyncio.Task[LinkEnded]) -> None:
        self._task = None
        ended = LinkEnded("the attempt was given up") if task.cancelled() else task.result()
        if self._closing:
            return
        self.problem = self._dropped or ended.why
        verdict = self._credentials.ended(ended.code)
        final = None if verdict in {"at once", "later"} else ended.final
        self._core.lost(self._clock.now(), final=final is not None, at_once=verdict == "at once")
        if final is not None:
            self._user.link_ended(final)
        else:
            self._user.link_down("offline")
            self._arm()


async def _welcome(transport: Transport) -> WelcomeInfo:
    """Return the server's welcome, which must come first.

    Raises:
        LinkEnded: the connection ended, or something else came.

    """
    while True:
        frame = await transport.receive()
        if isinstance(frame, Welcome):
            return frame.info
        if frame is not None and not isinstance(frame, (ErrorFrame, Ping)):
            problem = f"The server began with {type(frame).__name__.lower()!r} instead of 'welcome'."
            raise LinkEnded(problem, IncompatibleServer(problem))


def _version() -> str:
    try:
        return version("midstream")
    except PackageNotFoundError:
        return "unknown"


VERSION = _version()
"""The version of this package, which ``hello`` names."""
