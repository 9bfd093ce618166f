"""Lets calls through to the sessions that their callers may see (SPEC 10.5, G21).

A call on a session that the caller may not see never reaches its loop: it loads nothing, waits in no
mailbox, and is refused exactly as one on a session that is not there, by the same reading of the store.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from midstream.protocol.errors import MidstreamError, NotFound, Overloaded, Unavailable
from midstream.server.sessions.access import SessionRef
from midstream.server.storage import store
from midstream.server.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from midstream.server.sessions.access import Action
    from midstream.server.sessions.commands import Caller, Command
    from midstream.server.sessions.services import Services


class Guard:
    """Stands before all sessions. The calls on one session stay in their order."""

    def __init__(
        self,
        services: Services,
        *,
        deliver: Callable[[str, Command], None],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Let through to ``deliver``; ``spawn`` begins a task."""
        self._services = services
        self._deliver = deliver
        self._spawn = spawn
        self._waiting: dict[str, deque[Command]] = {}
        """Calls on sessions of which it is being read whose they are."""

    def post(self, session_id: str, command: Command) -> None:
        """Let a call through, at once or when it is known whose the session is.

        Raises:
            Overloaded: too many wait.
            MidstreamError: it was not taken.

        """
        waiting = self._waiting.get(session_id)
        if waiting is None:
            if self.allows(command.caller, command.action, session_id):
                self._deliver(session_id, command)
                return
            waiting = self._waiting[session_id] = deque()
            self._spawn(self._look(session_id))
        elif len(waiting) >= self._services.settings.mailbox:
            raise Overloaded("The session has too many calls waiting. Send the call again in a moment.")
        waiting.append(command)

    def allows(self, caller: Caller, action: Action | None, session_id: str) -> bool:
        """Say whether a caller may do something, by what is known without reading."""
        owners = self._services.owners
        return owners.knows(session_id) and self._may(caller, action, session_id, owners.get(session_id))

    async def check(self, caller: Caller, action: Action, session_id: str) -> None:
        """Check that there is a session that the caller may do this with.

        Raises:
            NotFound: there is none, or it may not.
            StorageError: it cannot be read.

        """
        if not self.allows(caller, action, session_id):
            found = await self._services.database.read(partial(store.find_owner, session_id=session_id))
            if found is None or not self._may(caller, action, session_id, found[0]):
                raise NotFound("session", session_id)

    def _may(self, caller: Caller, action: Action | None, session_id: str, owner: str | None) -> bool:
        authorization = self._services.authorization
        return action is not None and authorization.authorize(
            caller.identity, action, SessionRef(session_id, owner)
        )

    async def _look(self, session_id: str) -> None:
        refusal: MidstreamError = NotFound("session", session_id)
        found = None
        try:
            found = await self._services.database.read(partial(store.find_owner, session_id=session_id))
        except StorageError as error:
            refusal = Unavailable(f"The session's storage failed: {error}")
        finally:
            waiting = self._waiting.pop(session_id)
            if found is not None:
                self._services.owners.learn(session_id, found[0])
            for command in waiting:
                if found is None or not self._may(command.caller, command.action, session_id, found[0]):
                    command.reply(refusal)
                else:
                    self._pass(session_id, command)

    def _pass(self, session_id: str, command: Command) -> None:
        try:
            self._deliver(session_id, command)
        except MidstreamError as error:
            command.reply(error)
