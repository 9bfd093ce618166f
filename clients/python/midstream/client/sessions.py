"""The list of sessions, kept as the server has it (SPEC 4.8, 7.11)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from midstream.client.calls import Answer, PendingCall
from midstream.client.errors import ClientError, MidstreamError
from midstream.client.exchange import Exchange
from midstream.client.listing import Listing, Page
from midstream.client.waiting import Waiters
from midstream.protocol.calls import ListParams, ListResult, WatchParams
from midstream.protocol.lists import ListChanges
from midstream.protocol.model import Session as SessionInfo

ListState: TypeAlias = Literal["connecting", "syncing", "live", "offline", "closed"]
"""``connecting``, ``offline``: no connection, and the list is shown as it was. ``syncing``: it was asked for.
``live``: it is as the server has it."""


class Owner(Protocol):
    """What a list asks of its client."""

    def forget_list(self, sessions: SessionList) -> None:
        """Learn that a list is closed."""
        ...


class SessionList:
    """Sessions, the last changed first: titles, what runs, who waits for an answer. Closed by :meth:`close`.

    It is state and no log: a session that changed ten times in a moment is told once, as it is then.
    ``async for items in sessions`` gives the items now and after each change; who is slow gets the newest.
    """

    def __init__(self, exchange: Exchange, owner: Owner, *, limit: int, archived: bool) -> None:
        """Begin empty; the owner brings frames and the state of the link."""
        self.items: list[SessionInfo] = []
        """A new list after each change; what did not change is the same object."""
        self.state: ListState = "connecting"
        self.error: MidstreamError | None = None
        """Why it is closed, where nobody closed it."""
        self._exchange = exchange
        self._owner = owner
        self._limit = limit
        self._archived = archived
        self._listing = Listing(archived=archived)
        self._waiters = Waiters()
        self._changes = 1
        self._after: str | UnsetType = UNSET
        self._answered = False
        self._call: PendingCall | None = None

    @property
    def has_more(self) -> bool:
        """Whether the server has sessions that changed longer ago: see :meth:`load_more`."""
        return self._after is not UNSET

    async def until(self, condition: Callable[[], object], timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what is in the way
        """Wait until ``condition`` holds; it is looked at now and after each change.

        Raises:
            TimedOut: it did not hold within ``timeout`` seconds.
            MidstreamError: the list is closed, and it does not hold.

        """
        await self._until(condition, "What was waited for", timeout)

    async def until_live(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what is in the way
        """Wait until the list is as the server has it. Raises what :meth:`until` raises."""
        await self._until(lambda: self.state == "live", "The list of sessions", timeout)

    async def __aiter__(self) -> AsyncIterator[list[SessionInfo]]:
        """Give the items now and after each change, until the list is closed.

        Raises:
            MidstreamError: it was closed by this.

        """
        seen = -1
        while seen := await self._change_after(seen):
            yield self.items
        if self.error is not None:
            raise self.error

    async def load_more(self) -> bool:
        """Load the next page; False where there is none.

        Raises:
            TimedOut: not within the client's ``call_timeout``.
            MidstreamError: the server refused, or the list is closed.

        """
        while True:
            await self.until_live(self._exchange.timeout_s)
            if self._after is UNSET:
                return False
            page = self._listing.ask_page()
            try:
                result = await self._exchange.ask(
                    "sessions.list", self._next_page(), ListResult, repeatable=True
                )
                if self._joined(page, result):
                    self._show()
                    return True
            finally:
                self._listing.drop(page)

    def close(self) -> None:
        """Watch no longer; what was shown stays."""
        self.end(None)

    # What the owner brings

    def connected(self) -> None:
        """Ask for the list: there is a new connection."""
        self._ask()

    def disconnected(self, state: Literal["connecting", "offline"]) -> None:
        """Learn that there is no connection."""
        self._begin(state)

    def frame(self, changes: ListChanges) -> None:
        """Take a frame; before the answer it belongs to an earlier watch."""
        if not self._answered:
            return
        if changes.incomplete:
            self._ask()
        elif self._listing.apply(changes):
            self._show()

    def end(self, error: MidstreamError | None) -> None:
        """Be closed, because of an error or because it was asked for."""
        if self.state != "closed":
            self.error = error
            self._owner.forget_list(self)
            self._begin("closed")

    def _begin(self, state: ListState) -> None:
        if self._call is not None:
            self._exchange.abandon(self._call)
            self._call = None
        self._answered = False
        self.state = state
        self._waiters.notify()

    def _ask(self) -> None:
        self._begin("syncing")
        # what was loaded already is asked for again, so that the list does not get shorter
        wanted = min(max(self._limit, len(self.items)), self._exchange.limits.page_messages)
        params = WatchParams(limit=wanted, archived=self._archived)
        self._start("sessions.watch", params, self._on_answer)

    def _on_answer(self, result: ListResult) -> None:
        self._answered = True
        self._listing.replace(result.items)
        self._after = result.next_after
        self._fill()

    def _fill(self) -> None:
        """Load pages until the list is as long as it was, then show it."""
        if self._after is UNSET or len(self._listing) >= len(self.items):
            self.state = "live"
            self._show()
            return
        page = self._listing.ask_page()

        def filled(result: ListResult) -> None:
            if self._joined(page, result):
                self._fill()

        self._start("sessions.list", self._next_page(), filled)

    def _start(self, method: str, params: msgspec.Struct, take: Callable[[ListResult], None]) -> None:
        def settle(answer: Answer) -> None:
            self._call = None
            if isinstance(answer, ListResult):
                take(answer)
            elif isinstance(answer, MidstreamError):
                self.end(answer)

        self._call = self._exchange.start(method, params, settle, repeatable=True)

    def _next_page(self) -> ListParams:
        limit = min(self._limit, self._exchange.limits.page_messages)
        return ListParams(limit=limit, after=self._after, archived=self._archived)

    def _joined(self, page: Page, result: ListResult) -> bool:
        if not self._listing.join(page, result.items):
            return False
        self._after = result.next_after
        return True

    def _show(self) -> None:
        if self.state == "live":
            self.items = self._listing.sorted()
            self._changes += 1
            self._waiters.notify()

    async def _change_after(self, seen: int) -> int:
        """Return the number of the newest change when it is not ``seen``; 0 when the list is closed."""

        def look() -> int | None:
            if self.state == "closed":
                return 0
            return None if self._changes == seen else self._changes

        return await self._waiters.until(
            look, what="A change", timeout=None, problem=lambda: self._exchange.problem
        )

    async def _until(self, condition: Callable[[], object], what: str, seconds: float | None) -> None:
        def look() -> bool | None:
            if condition():
                return True
            if self.state == "closed":
                raise self.error or ClientError(
                    "The list of sessions is closed. Ask the client for a new one."
                )
            return None

        await self._waiters.until(look, what=what, timeout=seconds, problem=lambda: self._exchange.problem)
