"""Workers that do everything wrong: what one turn takes of them is what a list of writes would take."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from midstream.protocol.agents import EndStep
from midstream.protocol.frames import Ack
from tests.server.sessions.house import Street, refusal
from tests.server.sessions.workers import COMPLETED, Link, Remote, reason, remote_agents, texts
from tests.simulation.run import run

if TYPE_CHECKING:
    from midstream.server.sessions.offers import RemoteAgents
    from tests.server.sessions.house import House
    from tests.simulation.simloop import SimLoop

LEASE, TAKEOVER = 1_000.0, 5.0
PROCESSES = [("a", "1"), ("a", "2"), ("b", "1")]
"""Two lives of one worker, and another worker whose life is called like the first one's."""


class Model:
    """The turn as a list of what was taken.

    Attributes:
        taken: what each write appended, by its number less one.
        house, agents: the present server.
        durable: how many of them were acknowledged as stored.
        holder: the process that attached last.
        held: its attachment, while it stands.
        free_at: from when on anybody may attach.
        generations: the last one that each process was told.
        stale: attachments that are over.
    """

    def __init__(self, rng: Random, house: House, agents: RemoteAgents, turn_id: str) -> None:
        self.rng = rng
        self.house, self.agents = house, agents
        self.turn_id = turn_id
        self.taken: list[str] = []
        self.durable = 0
        self.generation = 0
        self.holder: tuple[str, str] | None = None
        self.held: Remote | None = None
        self.free_at = 0.0
        self.generations: dict[tuple[str, str], int] = {}
        self.stale: list[Remote] = []
        self.links: dict[tuple[str, str], Link] = {}
        self.met: set[str] = set()

    # What may happen

    async def attach(self) -> None:
        """Let some process attach, with or without its generation, on a new connection or an old one."""
        who = self.rng.choice(PROCESSES)
        link = self.links.get(who)
        if link is None or link.is_gone or self.rng.random() < 0.5:
            link = self.links[who] = Link(who[0], instance=who[1], resumes=True)
            self.agents.register(link, 1)
        generation = self.generations.get(who) if self.rng.random() < 0.7 else None
        expected = self._refusal(who, generation)
        attaching = Remote.attach(self.house, link, self.turn_id, generation=generation)
        if expected:
            assert reason(await refusal(attaching)) == expected
            self.met.add(expected)
            return
        remote = await attaching
        self.met.add("again" if self.holder == who else "over")
        if self.held is not None:
            assert self.held.link.detached[-1] == "fenced"
            self._over()
        self._begin(who, remote)

    def _refusal(self, who: tuple[str, str], generation: int | None) -> str:
        if self.holder is None or who == self.holder:
            return ""
        if generation is not None and generation != self.generation:
            return "fenced"
        is_free = self.held is None and (who[0] == self.holder[0] or self._now() >= self.free_at)
        return "" if is_free else "turn_taken"

    def _begin(self, who: tuple[str, str], remote: Remote) -> None:
        answer = remote.attached
        assert answer.generation == self.generation + 1
        assert self.durable <= answer.durable_n == answer.next_n - 1 <= len(self.taken)
        del self.taken[answer.durable_n :]  # of what was only streamed a crash leaves nothing
        self.durable = answer.durable_n
        self.generation = self.generations[who] = answer.generation
        self.holder, self.held = who, remote
        assert texts(answer.messages) == (["".join(self.taken)] if self.taken else [])

    async def write(self) -> None:
        """Let the holder write what is next: open the text, append to it, or store it."""
        remote = self.held
        if remote is None:
            return
        if not self.taken:
            remote.open_text()
            self.taken.append("")
        elif self.rng.random() < 0.2:
            remote.write(EndStep(step_id="of another step"))
            self.taken.append("")
        else:
            remote.handle("p1")
            piece = f"{len(self.taken)} by {self.holder}; "
            remote.append(1, piece)
            self.taken.append(piece)
        if self.rng.random() < 0.5:
            await remote.acknowledged()
            self.durable = max(ack.durable for ack in remote.link.of(Ack) if self._is_of(ack, remote))

    async def repeat(self) -> None:
        """Let the holder send a number again, with other content."""
        if self.held is not None and self.taken:
            self.held.append(1, "never: a number that was taken", self.rng.randint(1, len(self.taken)))

    async def leave_out(self) -> None:
        """Let the holder leave a number out, which ends its attachment."""
        remote = self.held
        if remote is not None and self.taken:
            remote.append(1, "never: behind a gap", len(self.taken) + self.rng.randint(2, 9))
            await remote.link.until(lambda: remote.link.detached)
            assert remote.link.detached[-1] == "gap"
            remote.link.frames.clear()
            self._over()
            self.met.add("gap")

    async def come_late(self) -> None:
        """Let something arrive for an attachment that is over."""
        if self.stale:
            remote = self.rng.choice(self.stale)
            remote.append(1, "never: of an attachment that is over", len(self.taken) + 1)
            self.met.add("stale")

    async def lose(self) -> None:
        """Lose a connection, which may be the holder's."""
        link = self.rng.choice([*self.links.values(), None])
        if link is not None:
            link.lose()
            if self.held is not None and self.held.link is link:
                await asyncio.sleep(0.1)  # what it sent is carried out
                self._over()

    async def give_up(self) -> None:
        """Let the holder give the turn up."""
        if self.held is not None:
            self.held.link.give_up(self.held.attached.channel)
            await asyncio.sleep(0.1)
            self._over()
            self.free_at = self._now()

    async def wait(self) -> None:
        """Let time pass."""
        await asyncio.sleep(self.rng.choice([0.0, 0.02, 1.0, TAKEOVER]))

    # The server

    def stopped(self) -> None:
        """Learn that the server is gone, and every connection with it."""
        self._over()
        self.links.clear()
        self.stale.clear()

    def started(self, house: House, agents: RemoteAgents) -> None:
        """Learn that there is a new one."""
        self.house, self.agents = house, agents
        self.free_at = self._now() + TAKEOVER

    def _over(self) -> None:
        if self.held is not None:
            self.stale.append(self.held)
            self.held = None
            self.free_at = self._now() + TAKEOVER

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _is_of(self, ack: Ack, remote: Remote) -> bool:
        return ack.channel == remote.attached.channel


async def play(street: Street, rng: Random) -> set[str]:
    """Let a few servers have a turn, one after another; return what was met."""
    model: Model | None = None
    for life in range(lives := rng.randint(1, 4)):
        agents = remote_agents(lease_seconds=LEASE, offer_seconds=LEASE, takeover_seconds=TAKEOVER)
        async with street.house(remote=agents) as house:
            if model is None:
                await house.create()
                model = Model(rng, house, agents, str((await house.prompt("a")).turn_id))
            else:
                model.started(house, agents)
            mishaps = [model.repeat, model.leave_out, model.come_late, model.lose, model.give_up]
            for _ in range(rng.randint(5, 40)):
                await house.settled()
                await rng.choice([model.attach, model.wait, *[model.write] * 5, *mishaps])()
            if life < lives - 1:
                model.stopped()
                if rng.random() < 0.5:
                    await house.crash()
                continue
            await end(model)
    assert model is not None
    return model.met


async def end(model: Model) -> None:
    """Let the turn be ended; its text is what was taken, once and in order."""
    while model.held is None:
        await asyncio.sleep(TAKEOVER)
        await model.attach()
    remote = model.held
    remote.write(COMPLETED)
    await remote.link.until(lambda: "ended" in remote.link.detached)
    said = texts(await model.house.messages())
    assert said == (["".join(model.taken)] if model.taken else [])


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_what_is_taken_is_a_list_whatever_workers_do(tmp_path: Path, first: int) -> None:
    """Numbers sent again, left out and late, attaches by everybody, lost connections and servers."""
    met: set[str] = set()
    for seed in range(first, first + 50):

        async def scenario(loop: SimLoop, seed: int = seed) -> set[str]:
            return await play(Street(tmp_path / f"{seed}.db", loop), Random(seed))

        met |= run(scenario, seed)
    assert met == {"again", "over", "turn_taken", "fenced", "gap", "stale"}
