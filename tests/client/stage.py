"""Where a scenario with a client and a scripted server is played: on real sockets, and in simulations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from midstream.client import Client, Options, Session
from midstream.client.clock import Clock, SystemClock
from midstream.client.transport import Encoding
from midstream.protocol.calls import SubscribeParams
from tests.client.conversation import Conversation
from tests.client.peer import Asked, Peer, PeerLink
from tests.clock import SimClock
from tests.simulation.run import run
from tests.simulation.simloop import SimLoop

SEEDS = (0, 1, 2)


class Impatient(Random):
    """Chance that makes every pause as short as can be, because time on real sockets is real."""

    def uniform(self, a: float, b: float) -> float:
        """Return the lower end."""
        del b
        return a


class Stage:
    """One scripted server, and the clients of a scenario."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self.peer = Peer()
        self.clock = clock
        self.random = random
        self._clients: list[Client] = []

    def client(
        self,
        encoding: Encoding = "msgpack",
        *,
        random: Random | None = None,
        **options: Any,  # noqa: ANN401 - of Options
    ) -> Client:
        """Return a new client of the server, which is closed at the end."""
        client = Client(
            self.peer.url,
            encoding=encoding,
            clock=self.clock,
            random=random or self.random,
            options=Options(**options),
        )
        self._clients.append(client)
        return client

    async def opened(
        self,
        client: Client,
        conversation: Conversation,
        **wish: Any,  # noqa: ANN401 - of Client.session
    ) -> tuple[Session, PeerLink]:
        """Open a session on a new connection, with a ``reset`` as its first sync."""
        opening = asyncio.ensure_future(client.session(conversation.session.session_id, **wish))
        link = await self.peer.accept()
        await self.sync(link, conversation)
        return await opening, link

    async def sync(self, link: PeerLink, conversation: Conversation) -> SubscribeParams:
        """Answer a subscription: with what is missing where it has a cursor, else with everything."""
        asked = await link.asked("subscribe")
        params = asked.as_(SubscribeParams)
        assert params.session_id == conversation.session.session_id
        await answer_subscribe(asked, conversation)
        return params

    async def close(self) -> None:
        """Close the clients, then the server."""
        for client in self._clients:
            await client.close()
        await self.peer.stop()


async def answer_subscribe(asked: Asked, conversation: Conversation) -> None:
    """Answer a subscription by its cursor."""
    cursor = asked.as_(SubscribeParams).cursor
    payload = conversation.catchup(cursor.version) if cursor else conversation.reset()
    await asked.result(conversation.subscribed(payload))


Scenario = Callable[[Stage], Coroutine[Any, Any, None]]


async def _play(scenario: Scenario, stage: Stage) -> None:
    await stage.peer.start()
    try:
        await scenario(stage)
    finally:
        await stage.close()


def _play_on_sockets(scenario: Scenario) -> None:
    async def main() -> None:
        await _play(scenario, Stage(SystemClock(), Impatient(1)))
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left

    asyncio.run(main(), debug=True)


def _play_in_simulation(scenario: Scenario, seed: int) -> None:
    async def main(loop: SimLoop) -> None:
        await _play(scenario, Stage(SimClock(loop), Random(f"client {seed}")))

    run(main, seed)


def on_every_network(scenario: Scenario) -> Callable[[str], None]:
    """Make a test of a scenario: once on real sockets, and in simulations with several seeds.

    Afterwards no task is left, and nothing went unhandled.
    """

    def test(network: str) -> None:
        if network == "sockets":
            _play_on_sockets(scenario)
        else:
            _play_in_simulation(scenario, int(network.removeprefix("seed")))

    networks = ["sockets", *(f"seed{seed}" for seed in SEEDS)]
    _name(test, scenario)
    return pytest.mark.parametrize("network", networks)(test)


def in_simulation(scenario: Scenario) -> Callable[[int], None]:
    """Make a test of a scenario in which time matters: in simulations only, where time is virtual."""

    def test(seed: int) -> None:
        _play_in_simulation(scenario, seed)

    _name(test, scenario)
    return pytest.mark.parametrize("seed", SEEDS)(test)


def _name(test: Callable[..., None], scenario: Scenario) -> None:
    # not functools.wraps: pytest would look through it, and find an async test
    test.__name__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    test.__module__ = scenario.__module__
