"""A visitor with the Python client, as an application would use it."""

from contextlib import suppress

from midstream.client import (
    Client,
    MidstreamError,
    Options,
    Session,
    SessionClosed,
    SessionList,
    TimedOut,
    TurnHandle,
)
from midstream.protocol.calls import CancelQueue, Delivery, PromptResult, StopResult
from midstream.protocol.model import InteractionPart, InteractionResponse
from tests.clock import SimClock
from tests.simulation.backend import URL
from tests.simulation.follower import Follower
from tests.simulation.knobs import Wish
from tests.simulation.visitor import Chore, Scene, Visitor

LIST_SECONDS = 5.0
"""What a frame of a list may take, once nothing changes."""


class Person(Visitor):
    """Uses `midstream.client`.

    Attributes:
        clock: its clocks; the wall may be far off.
    """

    def __init__(self, scene: Scene, name: str, wish: Wish) -> None:
        super().__init__(scene, name, wish)
        self.clock = SimClock(scene.loop)
        self.clock.skew_wall(wish.skew_ms)
        self._client: Client
        self._open: dict[str, Session] = {}
        self._lists: dict[bool, SessionList] = {}
        """What it shows of all sessions: the archived ones, and the others."""

    def is_live(self, session_id: str) -> bool:
        """Say whether its session is live."""
        session = self._open.get(session_id)
        return session is not None and session.state == "live"

    @property
    def is_connected(self) -> bool:
        """Whether its lists are live: so its connection is, and what it still had to send is on its way."""
        return all(sessions.state == "live" for sessions in self._lists.values())

    def _begin(self) -> None:
        self._open = {}
        self._client = Client(
            URL,
            encoding="json" if self.wish.json else "msgpack",
            clock=self.clock,
            random=self._rng,
            options=Options(max_messages=self.wish.max_messages),
        )
        self._lists = {}
        self._do("watches the lists", self._watch())

    async def _watch(self) -> None:
        for archived in (False, True):
            self._lists[archived] = self._client.watch_sessions(self.wish.limit, archived=archived)

    def look_at_lists(self) -> None:
        """Hold its lists against the server's; nothing changes any more."""
        for archived, sessions in self._lists.items():
            self._do(f"looks at its list (archived: {archived})", self._look_at(sessions, archived=archived))

    async def _look_at(self, sessions: SessionList, *, archived: bool) -> None:
        while await sessions.load_more():
            pass
        listed = await self._client.sessions(200, archived=archived)
        right = sorted(listed, key=lambda session: (-session.updated_at, session.session_id))
        try:
            await sessions.until(lambda: sessions.items == right, LIST_SECONDS)
        except TimedOut:
            self._scene.diary.complain(f"{self.name}'s list shows {sessions.items}, and not {right}")

    async def _close(self) -> None:
        await self._client.close()

    def _can_ask(self, session_id: str) -> bool:
        return self._is_in(session_id)

    def _is_in(self, session_id: str) -> bool:
        session = self._open.get(session_id)
        return session is not None and session.state != "closed"

    async def _enter(self, session_id: str) -> None:
        wish = self.wish
        while True:
            try:
                session = await self._client.session(
                    session_id,
                    create=self._scene.oracle.session(session_id).fork_of is None,
                    limit=wish.limit,
                    include_internal=wish.include_internal,
                    pace_ms=wish.pace_ms,
                )
            except TimedOut:
                continue  # the client goes on trying, and only what was opened can be closed
            if session_id in self.entered:
                self._opened(session)
            else:
                await session.close()  # left meanwhile
            return

    def _opened(self, session: Session) -> None:
        self._open[session.session_id] = session
        if self.wish.follows:
            application = self._run_application(Follower(session, self.wish.follows))
            self._scene.loop.create_task(application, name=f"{self.name} follows")

    async def _run_application(self, follower: Follower) -> None:
        def complain(what: str) -> None:
            self._scene.diary.complain(f"{self.name}'s application: {what}")

        with suppress(MidstreamError):  # the session was closed
            await follower.follow(complain)

    async def _leave(self, session_id: str) -> None:
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.close()

    def _session(self, session_id: str) -> Session:
        found = self._open.get(session_id)
        if found is None:
            raise SessionClosed(session_id, "not opened yet")
        return found

    async def _prompt(self, session_id: str, message_id: str, text: str, delivery: Delivery) -> PromptResult:
        session = self._session(session_id)
        handle = await session.prompt(text, message_id=message_id, delivery=delivery)
        self._do(f"waits for the end of {message_id}", self._follow(handle))
        return await handle.accepted()

    async def _follow(self, handle: TurnHandle) -> None:
        turn = await handle.finished()
        self._scene.oracle.saw_end(turn)

    async def _stop(self, session_id: str, turn_id: str, cancel_queue: CancelQueue) -> StopResult:
        return await self._session(session_id).stop(turn_id, cancel_queue=cancel_queue)

    async def _respond(
        self, session_id: str, interaction_id: str, response: InteractionResponse
    ) -> InteractionPart:
        return await self._session(session_id).respond(interaction_id, response)

    async def _cancel_input(self, session_id: str, message_id: str) -> PromptResult:
        return await self._session(session_id).cancel_input(message_id)

    async def _fork(self, session_id: str, message_id: str | None, new_id: str) -> None:
        session = self._session(session_id)
        try:
            copy = await session.fork(message_id, session_id=new_id)
        except TimedOut:  # made or not; if it was, the client follows it by now
            copy = await self._made(new_id)
        self.entered[new_id] = None
        if self.wish.include_internal:
            await copy.close()  # which shows none
            await self._enter(new_id)
        else:
            self._opened(copy)

    async def _made(self, new_id: str) -> Session:
        """Return a copy whose making took too long, once it is synced, or raise NotFound."""
        while True:
            with suppress(TimedOut):
                return await self._client.session(new_id)

    async def _chore(self, chore: Chore, session_id: str) -> None:
        session = self._session(session_id)
        if chore == "clear":
            await session.clear()
        elif chore in {"archive", "unarchive"}:
            await session.archive(archived=chore == "archive")
        elif chore == "rename":
            await session.update(title=f"title {self._rng.randrange(1000)}", metadata={"by": self.name})
        elif chore == "delete":
            await session.delete()
            self.entered.pop(session_id, None)
        elif chore == "signal":
            await session.signal("typing", {"who": self.name})
        elif chore == "earlier":
            await session.load_earlier(self._rng.choice([1, 2, 50]))
        elif chore == "list":
            await self._client.sessions(5)
        else:
            report = await session.verify()
            if not report:
                self._scene.diary.complain(f"{self.name}'s {session_id} is not the server's: {report}")
