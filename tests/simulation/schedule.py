"""A schedule: what happens in a world, one thing after another, drawn from a seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from midstream.protocol.calls import CancelQueue, Delivery
from tests.simulation import script, shifts
from tests.simulation.knobs import MINUTES_10, CrewKnobs, Knobs, Wish
from tests.simulation.person import Person
from tests.simulation.visitor import Chore
from tests.simulation.world import HOMES, World, response_to

if TYPE_CHECKING:
    from tests.simulation.backend import Fate
    from tests.simulation.simloop import SimLoop
    from tests.simulation.visitor import Visitor

REMOTE_SEEDS: Final = 1_000_000
"""From here on schedules are of a server that leaves its turns to workers."""
Event = Callable[[World, Random], None]
PAUSES: Final = (0.0, 0.0, 0.01, 0.1, 0.5, 1.0, 3.0)
MAX_VIRTUAL_SECONDS: Final = 10_000.0


@dataclass(frozen=True, slots=True)
class Played:
    """A schedule that was played to its end.

    Attributes:
        lines: its diary.
        met: how often it met what schedules are for.
    """

    lines: list[str]
    met: Counter[str]


async def play(loop: SimLoop, directory: Path, *, traced: bool = False) -> Played:
    """Play the schedule of the loop's seed, to its end and its judgement.

    Raises:
        SimulationFailure: Something was not as promised. The diary stands in the notes.
    """
    rng = loop.random
    knobs = Knobs.drawn(rng)
    events, least, most = EVENTS, 8, 30
    if loop.seed >= REMOTE_SEEDS:
        knobs = msgspec.structs.replace(knobs, crew=CrewKnobs.drawn(rng), acts=rng.choice([3, 10]))
        events, least, most = EVENTS | REMOTE_EVENTS | shifts.EVENTS, 15, 40
    world = World(loop, directory, knobs, traced=traced)
    async with world.running():
        open_house(world, rng)
        if knobs.crew is not None:
            shifts.open_shop(world, rng)
        kinds = rng.sample(list(events), rng.randint(len(events) // 2, len(events)))
        kinds = ["prompt", *(kind for kind in kinds if kind != "prompt")]
        weights = [events[kind][0] for kind in kinds]
        for _ in range(rng.randint(least, most)):
            await asyncio.sleep(rng.choice(PAUSES))
            events[rng.choices(kinds, weights)[0]][1](world, rng)
            world.judge()
    return Played(world.diary.lines, world.witness.met + world.backend.met + world.instruments.met)


def open_house(world: World, rng: Random) -> None:
    """Let one to three people come, and often a stranger; each enters a session."""
    for name in ("ann", "bob", "cid")[: rng.randint(1, 3)]:
        world.invite(name, Wish.drawn(rng)).enter(HOMES[0])
    if rng.random() < 0.6:
        world.invite("stranger", Wish.drawn(rng), stranger=True).enter(rng.choice(HOMES))


# What visitors do


def prompt(world: World, rng: Random) -> None:
    """Somebody sends a new prompt."""
    visitor, session_id = _somebody(world, rng)
    delivery: Delivery = rng.choice(["auto", "auto", "auto", "queue", "reject", "interrupt"])
    visitor.prompt(session_id, script.drawn(rng, acts=world.knobs.acts), delivery)


def long_prompt(world: World, rng: Random) -> None:
    """Somebody asks for a text that takes its time, and for something to be approved."""
    visitor, session_id = _somebody(world, rng)
    visitor.prompt(session_id, f"text:2+slow:{rng.randint(3, 12)}+stream:3 approve:0 text:3")


def repeat(world: World, rng: Random) -> None:
    """Somebody, perhaps somebody else, sends a prompt again, as it was or with other words."""
    visitor, session_id = _somebody(world, rng)
    known = [prompt for prompt in world.oracle.prompts.values() if prompt.session_id == session_id]
    if known:
        again = rng.choice(known)
        text = min(again.texts) if rng.random() < 0.8 else "mark"
        visitor.prompt(session_id, text, "auto", again.message_id)


def stop(world: World, rng: Random) -> None:
    """Somebody stops the turn that runs, or one that he knows of."""
    visitor, session_id = _somebody(world, rng)
    replica = visitor.replica(session_id)
    known = list(replica.turns) if replica is not None else []
    turn_id = rng.choice(known) if known and rng.random() < 0.6 else "current"
    cancel: CancelQueue = rng.choice(["own", "all", "none"])
    visitor.stop(session_id, turn_id, cancel)


def respond(world: World, rng: Random) -> None:
    """Somebody, or two at once, answer what is asked."""
    visitor, session_id = _somebody(world, rng)
    for part in world.pending(visitor, session_id)[:2]:
        visitor.respond(session_id, part.interaction_id, response_to(part, rng))
        if rng.random() < 0.3:
            other, _ = _somebody(world, rng, session_id)
            other.respond(session_id, part.interaction_id, response_to(part, rng))


def take_back(world: World, rng: Random) -> None:
    """Somebody takes an input back, queued or not."""
    visitor, session_id = _somebody(world, rng)
    replica = visitor.replica(session_id)
    queue = [] if replica is None or replica.session is None else replica.session.queue
    known = [prompt.message_id for prompt in world.oracle.prompts.values() if prompt.session_id == session_id]
    if queue or known:
        visitor.cancel_input(session_id, rng.choice(queue or known))


def fork(world: World, rng: Random) -> None:
    """Somebody copies a session."""
    visitor, session_id = _somebody(world, rng)
    replica = visitor.replica(session_id)
    messages = [] if replica is None else replica.messages()
    if len(world.forks) < 3:
        new_id = f"fork-{len(world.forks) + 1}"
        world.forks.append(new_id)
        at = rng.choice(messages).message_id if messages and rng.random() < 0.7 else None
        visitor.fork(session_id, at, new_id)


def enter(world: World, rng: Random) -> None:
    """Somebody enters a session: a new one for him, or one that he left."""
    visitor = rng.choice(list(world.visitors.values()))
    visitor.enter(rng.choice([*HOMES, *world.forks]))


def leave(world: World, rng: Random) -> None:
    """Somebody leaves a session."""
    visitor, session_id = _somebody(world, rng)
    visitor.leave(session_id)


def switch(world: World, rng: Random) -> None:
    """Somebody leaves a session for another one, and comes back at once."""
    visitor, session_id = _somebody(world, rng)
    visitor.switch(session_id, rng.choice(HOMES))


def die(world: World, rng: Random) -> None:
    """Somebody's program is killed; it comes back with another event, or in the end."""
    visitor = rng.choice(list(world.visitors.values()))
    visitor.crash()


def return_(world: World, rng: Random) -> None:
    """Whoever died comes back."""
    del rng
    for visitor in world.visitors.values():
        visitor.start()


def delete(world: World, rng: Random) -> None:
    """Somebody deletes a session that is not everybody's."""
    visitor, session_id = _somebody(world, rng)
    if session_id != HOMES[0]:
        visitor.chore("delete", session_id)


def chore(name: Chore) -> Event:
    """Return the event that somebody does a chore."""

    def event(world: World, rng: Random) -> None:
        visitor, session_id = _somebody(world, rng)
        visitor.chore(name, session_id)

    return event


# What happens to them


def shift_clock(world: World, rng: Random) -> None:
    """Somebody's wall clock, or the server's, jumps by up to ten minutes."""
    clocks = [visitor.clock for visitor in world.visitors.values() if isinstance(visitor, Person)]
    rng.choice([world.clock, *clocks]).skew_wall(rng.randint(-MINUTES_10, MINUTES_10))


def link(name: str) -> Event:
    """Return the event that something happens to somebody's link."""

    def event(world: World, rng: Random) -> None:
        host = rng.choice(list(world.visitors.values())).host
        if host is not None:
            getattr(world.trouble, name)(host, rng)

    return event


def lose_frame(world: World, rng: Random) -> None:
    """The next frame of a session to somebody is lost."""
    visitor = rng.choice(list(world.visitors.values()))
    if visitor.host is not None:
        world.trouble.lose_frame(visitor.host, rng, syncs_too=visitor.wish.pace_ms is None)


def refuse(world: World, rng: Random) -> None:
    """The server's address refuses new connections for a while."""
    world.trouble.refuse(rng)


def crash(world: World, rng: Random) -> None:
    """The server is killed, now."""
    del rng
    world.backend.crash()


def doom(world: World, rng: Random) -> None:
    """The server is killed at one of its next commits, or that commit fails."""
    fate: Fate = rng.choice(["crash-before", "crash-after", "crash-after", "fail-before", "fail-after"])
    world.backend.arm(rng.choice([0, 0, 1, 2, 5]), fate)


def ambush(world: World, rng: Random) -> None:
    """Something happens in the middle of a stream."""
    event = EVENTS[
        rng.choice(
            ["crash", "crash", "cut", "half-open", "stall", "leave", "switch", "die", "restart", "stop"]
        )
    ][1]
    happening = Random(rng.random())
    world.at_delta(rng.choice([1, 2, 5, 20]), lambda: event(world, happening))


def restart(world: World, rng: Random) -> None:
    """The server is stopped in good order, and started again."""
    world.backend.stop(drain=rng.random() < 0.5)


EVENTS: Final[dict[str, tuple[float, Event]]] = {
    "prompt": (8, prompt),
    "repeat": (2, repeat),
    "stop": (2, stop),
    "respond": (5, respond),
    "take back": (1, take_back),
    "fork": (0.7, fork),
    "enter": (1.5, enter),
    "leave": (1, leave),
    "switch": (1, switch),
    "die": (0.7, die),
    "return": (1, return_),
    "delete": (0.2, delete),
    "clear": (0.7, chore("clear")),
    "archive": (0.3, chore("archive")),
    "unarchive": (0.5, chore("unarchive")),
    "rename": (0.7, chore("rename")),
    "signal": (0.3, chore("signal")),
    "earlier": (1.5, chore("earlier")),
    "list": (0.3, chore("list")),
    "verify": (3, chore("verify")),
    "shift clock": (0.5, shift_clock),
    "cut": (2, link("cut")),
    "half-open": (1, link("half_open")),
    "stall": (1, link("stall")),
    "slow": (0.4, link("slow")),
    "partition": (0.7, link("partition")),
    "lose frame": (2, lose_frame),
    "refuse": (0.5, refuse),
    "crash": (1.2, crash),
    "doom": (1.5, doom),
    "restart": (0.8, restart),
    "ambush": (3, ambush),
}
"""Everything that can happen, and how often it does."""

REMOTE_EVENTS: Final[dict[str, tuple[float, Event]]] = {
    "prompt": (16, prompt),
    "long prompt": (6, long_prompt),
    "doom": (4, doom),
}
"""Likewise, where workers run the turns; with what happens to them in `shifts.py`."""


def _somebody(world: World, rng: Random, session_id: str | None = None) -> tuple[Visitor, str]:
    """Choose a visitor and one of the sessions that he follows (or the one asked for)."""
    visitors = [visitor for visitor in world.visitors.values() if visitor.entered]
    visitor = rng.choice(visitors or list(world.visitors.values()))
    return visitor, session_id or rng.choice(list(visitor.entered) or [HOMES[0]])
