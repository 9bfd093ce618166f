"""A registry that holds no sessions: it notes what it is asked, and answers when a test says so."""

import asyncio

from midstream.protocol.calls import EmptyResult, ListResult, SubscribeResult
from midstream.protocol.frames import Delta
from midstream.server.connections.subscription import Subscription
from midstream.server.sessions.access import Action, SessionRef
from midstream.server.sessions.audience import Audience
from midstream.server.sessions.broadcast import Broadcast
from midstream.server.sessions.commands import Caller, Command, Subscriber, Watcher
from tests.server.connections.readers import CHANNEL, EPOCH, sync


class Notes:
    """A :class:`~midstream.server.connections.calls.Registry` for tests of connections.

    Commands wait in ``posted`` until they are answered; with ``at_once`` they are answered as they
    come: a ``subscribe`` by a sync at the current version, all else by an empty result.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        """Begin with nothing asked."""
        self.posted: list[tuple[str, Command]] = []
        self.left: list[tuple[str, Subscriber]] = []
        self.watchers: list[Watcher] = []
        self.unwatched: list[Watcher] = []
        self.subscribers: dict[str, list[Subscriber]] = {}
        self.audiences: dict[tuple[str, str], Audience] = {}
        self.refusal: Exception | None = None
        self.version = 10
        self.resynced: list[str] = []
        self.something = asyncio.Event()
        self._at_once = at_once

    def post(self, session_id: str, command: Command) -> None:
        """Note a command."""
        if self.refusal:
            raise self.refusal
        self.posted.append((session_id, command))
        self.something.set()
        if self._at_once:
            self.answer(command)

    def post_global(self, command: Command) -> None:
        """Note a command of no session."""
        self.post("", command)

    def resync(self, session_id: str, subscriber: Subscriber) -> None:
        """Bring a subscriber up, later, as a session does."""
        self.resynced.append(session_id)
        asyncio.get_running_loop().call_soon(self._bring_up, subscriber)

    def leave(self, session_id: str, subscriber: Subscriber) -> None:
        """Let a subscriber go."""
        self.left.append((session_id, subscriber))
        if subscriber in self.subscribers.get(session_id, []):
            self.subscribers[session_id].remove(subscriber)
            self.audiences[session_id, subscriber.kind].discard(subscriber)
        self.something.set()

    def watch(self, watcher: Watcher) -> None:
        """Tell somebody of sessions."""
        self.watchers.append(watcher)

    def allows(self, caller: Caller, action: Action, session_id: str) -> bool:  # noqa: ARG002 - there are no rights
        """Say that everybody may do everything."""
        return True

    def may_run(self, caller: Caller, session: SessionRef) -> bool:  # noqa: ARG002 - likewise
        """Say that everybody may."""
        return True

    def sees_alike(self, one: Caller, other: Caller) -> bool:  # noqa: ARG002 - likewise
        """Say that all see the same."""
        return True

    def unwatch(self, watcher: Watcher) -> None:
        """Tell somebody nothing any more."""
        self.unwatched.append(watcher)
        if watcher in self.watchers:
            self.watchers.remove(watcher)
        self.something.set()

    def answer(self, command: Command) -> None:
        """Answer a command as a session would."""
        if command.method == "subscribe":
            assert isinstance(command.subscriber, Subscription)
            subscriber, session_id = command.subscriber, command.subscriber.session_id
            self.subscribers.setdefault(session_id, []).append(subscriber)
            key = session_id, subscriber.kind
            self.audiences.setdefault(key, subscriber.audience()).add(subscriber)
            command.reply(SubscribeResult(channel=CHANNEL, sync=sync(self.version)))
        elif command.method == "sessions.watch":
            command.reply(ListResult(items=[]))
        else:
            command.reply(EmptyResult())

    def publish(self, session_id: str, *texts: str) -> None:
        """Publish deltas, as one run, to all subscribers of a session."""
        frames = [Delta(CHANNEL, self.version + n, 0, 1, 1, text) for n, text in enumerate(texts, 1)]
        self.version += len(texts)
        broadcast = Broadcast((EPOCH, self.version, 0), frames)
        for (audience_of, _), audience in self.audiences.items():
            if audience_of == session_id:
                audience.publish(broadcast)

    async def until_posted(self, count: int) -> Command:
        """Wait until so many commands came, and return the last of these."""
        while len(self.posted) < count:
            self.something.clear()
            await self.something.wait()
        return self.posted[count - 1][1]

    async def until_left(self, count: int) -> None:
        """Wait until so many subscribers were let go."""
        while len(self.left) < count:
            self.something.clear()
            await self.something.wait()

    def _bring_up(self, subscriber: Subscriber) -> None:
        if subscriber.behind and subscriber.cursor is not None:
            subscriber.bring_up(sync(self.version, since=subscriber.cursor.version))
