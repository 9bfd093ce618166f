"""Reading a replica's history from the server: earlier pages, and the proof that it is right (SPEC 4.2, 5.6).

Each answer is judged in the middle of the stream, where it stands, and not when the task that
asked runs again: there the replica is at the version that the answer shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec
from msgspec import UNSET

from midstream.client.errors import IncompatibleServer
from midstream.client.exchange import Exchange
from midstream.client.replica import SessionReplica
from midstream.protocol.calls import MessagesParams, Page, VerifyParams, VerifyResult
from midstream.protocol.digest import message_digest
from midstream.protocol.model import Message
from midstream.protocol.outcomes import PageOutcome

REREADS = 20
"""How often a page that does not fit is read again before the server is held to be at fault."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not the same here and there; a side is ``(revision, digest)``, or None if absent."""

    sequence: int
    here: tuple[int, str] | None
    there: tuple[int, str] | None


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison found; true where there was no difference."""

    compared: int
    """Messages of the server that were compared."""
    differences: tuple[Difference, ...]

    def __bool__(self) -> bool:
        """Say whether the replica equals the server, as far as its window reaches."""
        return not self.differences


def differences(messages: Iterable[Message], digests: Iterable[tuple[int, int, str]]) -> list[Difference]:
    """Compare messages with the server's digests of the same range, at the same version."""
    here = {message.sequence: (message.revision, message_digest(message)) for message in messages}
    there = {sequence: (revision, digest) for sequence, revision, digest in digests}
    return [
        Difference(sequence=sequence, here=here.get(sequence), there=there.get(sequence))
        for sequence in sorted(here.keys() | there.keys())
        if here.get(sequence) != there.get(sequence)
    ]


class History:
    """Reads pages and digests for one replica."""

    def __init__(
        self,
        replica: SessionReplica,
        exchange: Exchange,
        *,
        ready: Callable[[], Awaitable[None]],
        shown: Callable[[str, int], None],
    ) -> None:
        """Belong to a replica.

        ``ready`` waits until it is live, and raises what stands against that. ``shown`` is told the
        epoch and version that an answer shows.
        """
        self._replica = replica
        self._law = replica.law
        self._exchange = exchange
        self._ready = ready
        self._shown = shown

    async def load_earlier(self, limit: int) -> bool:
        """Extend the window downwards by up to ``limit`` messages; False where there are none."""
        for _ in range(REREADS):
            await self._ready()
            if not self._law.has_more:
                return False
            if await self._read_page(limit):
                return True
        raise IncompatibleServer(f"No page of earlier messages fits the replica after {REREADS} tries.")

    async def verify(self) -> VerifyReport:
        """Compare the window with the server's digests, each page at one and the same version."""
        found: list[Difference] = []
        compared = 0
        start = self._law.from_sequence or 1
        while self._law.session is not None and start <= self._law.session.message_count:
            end = min(start + self._exchange.limits.page_messages - 1, self._law.session.message_count)
            count, differing = await self._verify_range(start, end)
            compared += count
            found += differing
            start = end + 1
        return VerifyReport(compared=compared, differences=tuple(found))

    async def _verify_range(self, start: int, end: int) -> tuple[int, list[Difference]]:
        for _ in range(REREADS):
            await self._ready()
            page = await self._verify_page(start, end)
            if page is not None:
                return page
        raise IncompatibleServer(f"No digests were of the replica's version in {REREADS} tries.")

    async def _read_page(self, limit: int) -> int | None:
        """Read and merge the page before the window; return how many messages it gave, or None."""
        law, awaited = self._law, True
        first = law.from_sequence
        params = MessagesParams(
            session_id=law.session_id,
            limit=min(limit, self._exchange.limits.page_messages),
            before_sequence=UNSET if first is None else first,
            include_internal=law.include_internal,
        )

        def take(page: Page) -> int | None:
            nonlocal awaited
            awaited = False
            self._shown(page.epoch, page.version)
            held = len(law.messages())
            outcome = self._replica.merge_page(page)
            return len(law.messages()) - held if outcome is PageOutcome.MERGED else None

        law.expect_page()
        try:
            return await self._exchange.ask_and_take(
                "messages", params, Page, take, lane=law.session_id, repeatable=True
            )
        finally:
            if awaited:
                law.forget_page()

    async def _verify_page(self, start: int, end: int) -> tuple[int, list[Difference]] | None:
        """Compare a range of sequences; None where the answer and the replica show different versions."""
        law = self._law
        params = VerifyParams(
            session_id=law.session_id,
            from_sequence=start,
            to_sequence=end,
            include_internal=law.include_internal,
        )

        def take(result: VerifyResult) -> tuple[int, list[Difference]] | None:
            self._shown(result.epoch, result.version)
            if (result.epoch, result.version) != (law.epoch, law.version):
                return None
            here = [message for message in law.messages() if start <= message.sequence <= end]
            # a reset may have come since: what is below the window now is not held
            first = law.from_sequence
            there = [digest for digest in result.digests if first is not None and digest[0] >= first]
            return len(there), differences(here, there)

        return await self._exchange.ask_and_take(
            "verify", params, VerifyResult, take, lane=law.session_id, repeatable=True
        )
