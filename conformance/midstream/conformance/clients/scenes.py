"""Makes what each case is tried in; one program serves one case after the other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from midstream.conformance.clients.driver import Driver
from midstream.conformance.clients.scene import ClientCase, Scene, Settings
from midstream.conformance.clients.scripted import scripted_server
from midstream.conformance.outcome import Skipped, expect


class Scenes:
    """Makes the scenes of one run: one program serves all cases, until it ends or a case fails."""

    def __init__(self, command: Sequence[str], settings: Settings) -> None:
        """Start nothing yet."""
        self._command = list(command)
        self._settings = settings
        self._driver: Driver | None = None
        self.software = ""

    @asynccontextmanager
    async def scene(self, case: ClientCase) -> AsyncGenerator[Scene]:
        """Make the scene of a case, and see at its end that the client sent nothing that it must not."""
        driver = await self._running()
        lacking = sorted(case.needs - set(driver.ready.can))
        if lacking:
            raise Skipped(f"the client's program does not offer: {', '.join(lacking)}")
        is_good = False
        try:
            async with scripted_server() as server:
                here = Scene(driver, server, self._settings)
                try:
                    yield here
                finally:
                    await here.end()
                faults = [fault for peer in server.peers for fault in peer.faults]
                expect("frames of the client that break the protocol", faults, [])
                await here.tell("close")
                is_good = True
        finally:
            if not is_good:
                await self.end()  # what it still does must not be taken for the next case's

    async def end(self) -> None:
        """End the program, if it runs."""
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.end()

    async def _running(self) -> Driver:
        if self._driver is None or not self._driver.runs:
            await self.end()
            self._driver = await Driver.start(self._command)
            self.software = self._driver.ready.ready
        return self._driver
