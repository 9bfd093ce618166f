"""What happens to the workers of a schedule."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.crew import Trade

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.crew import Hand
    from tests.simulation.world import World


def open_shop(world: World, rng: Random) -> None:
    """Let one to three workers come; now and then two have one name."""
    for number in range(rng.randint(1, 3)):
        name = "w0" if rng.random() < 0.15 else f"w{number}"
        world.hire(f"hand{number}", Trade.drawn(name, rng))


def die(world: World, rng: Random) -> None:
    """A worker is killed; often it is started again at once, as by its supervisor."""
    hand = _somebody(world, rng)
    hand.crash()
    if rng.random() < 0.5:
        hand.start()


def return_(world: World, rng: Random) -> None:
    """Whoever died, or has ended, comes back."""
    del rng
    for hand in world.crew.values():
        hand.start()


def drain(world: World, rng: Random) -> None:
    """A worker is ended in good order."""
    _somebody(world, rng).drain(rng.choice([0.0, 0.5, 10.0]))


def replace(world: World, rng: Random) -> None:
    """Another process of a worker is started while the old one still runs."""
    hand = _somebody(world, rng)
    if len(world.crew) < MOST_HANDS:
        world.hire(f"hand{len(world.crew)}", Trade.drawn(hand.trade.name, rng))


def link(name: str) -> Callable[[World, Random], None]:
    """Return the event that something happens to a worker's link."""

    def event(world: World, rng: Random) -> None:
        host = _somebody(world, rng).host
        if host is not None:
            getattr(world.trouble, name)(host, rng)

    return event


def ambush(world: World, rng: Random) -> None:
    """Something happens to a worker in the middle of a stream."""
    event = rng.choice([die, die, drain, replace, link("cut"), link("half_open"), link("stall"), crash])
    happening = Random(rng.random())
    world.at_delta(rng.choice([1, 2, 5, 20]), lambda: event(world, happening))


def crash(world: World, rng: Random) -> None:
    """The server is killed."""
    del rng
    world.backend.crash()


MOST_HANDS: Final = 6

EVENTS: Final[dict[str, tuple[float, Callable[[World, Random], None]]]] = {
    "worker dies": (4, die),
    "worker returns": (4, return_),
    "worker drains": (1.5, drain),
    "worker is replaced": (1, replace),
    "worker is cut": (4, link("cut")),
    "worker is half-open": (1.5, link("half_open")),
    "worker stalls": (1.5, link("stall")),
    "worker is slow": (0.5, link("slow")),
    "worker is cut off": (1, link("partition")),
    "worker ambush": (12, ambush),
}
"""Everything that can happen, and how often it does."""


def _somebody(world: World, rng: Random) -> Hand:
    return rng.choice(list(world.crew.values()))
