"""A real database whose next write or read a test can hold, or report as failed, at a chosen moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar

import apsw

from midstream.server.storage.connection import Place
from midstream.server.storage.database import Database
from midstream.server.storage.errors import CommitFailed
from midstream.server.storage.lanes import Lane

T = TypeVar("T")
What = Literal["write", "read"]
When = Literal["before", "after"]


class Gate:
    """Where one use of the database stops."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def reached(self) -> None:
        """Wait until somebody stands at the gate."""
        async with asyncio.timeout(60):
            await self._reached.wait()

    def open(self) -> None:
        """Let it go on."""
        self._opened.set_result(None)

    def fail(self) -> None:
        """Report it as a commit that failed, whatever became of it."""
        self._opened.set_exception(CommitFailed(apsw.IOError("as the test says")))

    def cancel(self) -> None:
        """Let whoever stands there go: the program is dead."""
        self._opened.cancel()

    async def pass_(self) -> None:
        """Stand here until it opens."""
        self._reached.set()
        await self._opened


class GatedDatabase(Database):
    """See the module's text. A gate is for the next write or read only, and stands before or after it."""

    def __init__(self, place: Place, writer: Lane, readers: Lane, generation: int) -> None:
        """Use `open`."""
        super().__init__(place, writer, readers, generation)
        self._gates: dict[tuple[What, When], Gate] = {}

    def hold(self, what: What, when: When) -> Gate:
        """Put up a gate."""
        gate = Gate()
        self._gates[what, when] = gate
        return gate

    def fail(self, when: When) -> None:
        """Let the next write be reported as failed; ``after``: though it has happened."""
        self.hold("write", when).fail()

    async def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Write, through the gates."""
        await self._pass("write", "before")
        result = await super().write(job)
        await self._pass("write", "after")
        return result

    async def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Read, through the gates."""
        await self._pass("read", "before")
        result = await super().read(job)
        await self._pass("read", "after")
        return result

    def abandon(self) -> None:
        """Let go of the file as a crash does, and of everybody who stands at a gate."""
        for gate in self._gates.values():
            gate.cancel()
        super().abandon()

    async def _pass(self, what: What, when: When) -> None:
        gate = self._gates.get((what, when))
        if gate is not None:
            try:
                await gate.pass_()
            finally:
                self._gates.pop((what, when), None)
