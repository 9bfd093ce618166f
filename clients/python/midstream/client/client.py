"""The client: one connection that is kept, and the sessions that are read over it."""

from __future__ import annotations

from random import Random, SystemRandom
from types import TracebackType
from typing import Self

import msgspec
from msgspec import UNSET

from midstream.client.clock import Clock, SystemClock
from midstream.client.credentials import Token
from midstream.client.errors import MidstreamError
from midstream.client.hub import Hub
from midstream.client.link import LinkOptions, LinkState
from midstream.client.outbox import DEFAULT_OUTBOX_LIMIT
from midstream.client.reconnect import DEFAULT_POLICY, Policy
from midstream.client.replica import SessionReplica
from midstream.client.session import Session
from midstream.client.sessions import SessionList
from midstream.client.streams import Stream
from midstream.client.subscription import DEFAULT_MAX_MESSAGES, Subscription, Wish
from midstream.client.transport import MAX_FRAME_BYTES, Encoding, codec_named
from midstream.protocol.calls import CreateParams, ListParams, ListResult, SessionResult
from midstream.protocol.model import Session as SessionInfo
from midstream.protocol.values import Value


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a client can be told; the defaults are right for a person's chat."""

    call_timeout: float | None = 30.0
    """Seconds that a call waits for its answer, disconnects included."""
    outbox_limit: int = DEFAULT_OUTBOX_LIMIT
    """Prompts of a session that may wait for the connection."""
    max_frame_bytes: int = MAX_FRAME_BYTES
    """The longest frame that is taken from the server."""
    max_messages: int = DEFAULT_MAX_MESSAGES
    """Messages that a replica may grow to; past it, it begins anew with the newest, between turns."""
    policy: Policy = DEFAULT_POLICY
    """When to connect, ping and give up."""


DEFAULT_OPTIONS = Options()


class Client:
    """Speaks to one server. Use it as an async context manager, or :meth:`close` it.

    It connects in the background, at the latest when a session is asked for, and comes back by
    itself for as long as it is open. All methods belong to one event loop.
    """

    def __init__(
        self,
        url: str,
        token: Token | None = None,
        encoding: Encoding = "msgpack",
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        """Prepare to connect to ``url`` (``ws://`` or ``wss://``).

        ``token`` says who the client is: a text, or a function, async or not, that returns a token that is
        good now. With a function the client gets a new one in time, gives it to the server without losing the
        connection, and asks again where one was refused.

        ``clock`` and ``random`` are for simulations: no other time or chance is used, but the loop's.

        Raises:
            ValueError: the URL is not one of a WebSocket, or the encoding is unknown.

        """
        if not url.startswith(("ws://", "wss://")):
            raise ValueError(f"url is {url!r}, but must begin with ws:// or wss://")
        self._options = options
        self._random = random or SystemRandom()
        link = LinkOptions(
            url=url,
            codec=codec_named(encoding),
            token=token,
            policy=options.policy,
            max_frame_bytes=options.max_frame_bytes,
        )
        self._hub = Hub(
            link, clock=clock or SystemClock(), random=self._random, call_timeout=options.call_timeout
        )
        self._sessions: dict[str, Session] = {}

    @property
    def state(self) -> LinkState:
        """``connecting``, ``live``, ``offline`` or ``closed``."""
        return self._hub.state

    @property
    def error(self) -> MidstreamError | None:
        """Why the client is closed, where nobody closed it: the server said not to come back, say."""
        return self._hub.error

    @property
    def problem(self) -> str | None:
        """What last ended the connection or an attempt, in words; None while there is a connection."""
        return self._hub.exchange.problem

    def states(self) -> Stream[LinkState]:
        """Return a stream of the states from now on; a slow reader misses the oldest."""
        return self._hub.states.reader()

    async def session(
        self,
        session_id: str,
        *,
        create: bool = False,
        limit: int = 50,
        include_internal: bool = False,
        pace_ms: int | None = None,
        timeout: float | None = 30.0,  # noqa: ASYNC109 - the error says what is in the way
    ) -> Session:
        """Return the session, subscribed and synced; the same object for all who ask for its id.

        ``create`` makes it where there is none. ``limit`` is how many of the newest messages it begins
        with (1 to 200), ``include_internal`` shows the agent's internal messages, ``pace_ms`` (20 to
        500) asks for changes at that pace; all three count for the first who asks.

        Raises:
            TimedOut: not within ``timeout`` seconds; the client goes on trying, so ask again.
            NotFound: there is no such session, and ``create`` was not asked for.
            ValueError: the session is open already with another ``include_internal``.
            MidstreamError: the server refused, or the client is closed.

        """
        self._hub.begin()
        session = self._sessions.get(session_id)
        if session is None:
            wish = Wish(
                limit=limit,
                pace_ms=pace_ms,
                max_messages=self._options.max_messages,
                create=CreateParams(session_id=session_id, key=self._new_key()) if create else None,
            )
            session = self._open(SessionReplica(session_id, include_internal=include_internal), wish)
        elif session.include_internal != include_internal:
            asked = f"include_internal={include_internal}"
            raise ValueError(f"Session {session_id!r} is open without {asked}. Close it first.")
        await session.until_live(timeout)
        return session

    async def create(
        self,
        session_id: str | None = None,
        *,
        title: str | None = None,
        metadata: dict[str, Value] | None = None,
        key: str | None = None,
    ) -> SessionInfo:
        """Create a session without opening it; the server gives an id where there is none.

        The same ``key`` with the same content gives the same session, however often it is asked for.

        Raises:
            AlreadyExists: there is a session of this id, made otherwise.

        """
        self._hub.begin()
        params = CreateParams(
            session_id=UNSET if session_id is None else session_id,
            key=key or self._new_key(),
            title=UNSET if title is None else title,
            metadata=metadata or {},
        )
        result = await self._hub.exchange.ask("sessions.create", params, SessionResult, repeatable=True)
        return result.session

    async def sessions(self, limit: int = 50, *, archived: bool = False) -> list[SessionInfo]:
        """Return up to ``limit`` sessions, the last changed first; ``archived`` gives those instead."""
        self._hub.begin()
        found: list[SessionInfo] = []
        after: str | msgspec.UnsetType = UNSET
        while len(found) < limit:
            page = min(limit - len(found), self._hub.exchange.limits.page_messages)
            params = ListParams(limit=page, after=after, archived=archived)
            result = await self._hub.exchange.ask("sessions.list", params, ListResult, repeatable=True)
            found += result.items
            after = result.next_after
            if after is UNSET:
                break
        return found

    def watch_sessions(self, limit: int = 50, *, archived: bool = False) -> SessionList:
        """Return the list of sessions, kept as the server has it until it is closed; it begins empty.

        ``limit`` is how many a page has (1 to 200). ``archived`` gives the archived ones instead.
        """
        self._hub.begin()
        return self._hub.watch_sessions(limit=limit, archived=archived)

    async def close(self) -> None:
        """Close the connection and all sessions, and return when nothing runs any more.

        Raises:
            Exception: the client failed by a fault of its own, and this is it.

        """
        await self._hub.close()

    async def __aenter__(self) -> Self:
        """Begin to connect; does not wait for it."""
        self._hub.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.close()

    def forget(self, session: Session) -> None:
        """Forget a session that is closed: the next who asks for it gets a new one."""
        if self._sessions.get(session.session_id) is session:
            del self._sessions[session.session_id]
            self._hub.remove(session.session_id)

    def _open(self, replica: SessionReplica, wish: Wish) -> Session:
        subscription = Subscription(replica, self._hub.tools, wish)
        session = Session(subscription, self._hub.tools, self, self._options.outbox_limit)
        self._sessions[session.session_id] = session
        self._hub.add(subscription)
        return session

    def _new_key(self) -> str:
        return f"key_{self._random.getrandbits(64):016x}"
