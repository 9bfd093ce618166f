"""What goes wrong between the programs: links that are cut, half-open, stalled, slow, or lose a frame."""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

from tests.link import Direction, Link, Shape
from tests.simulation.backend import HOST_NAME, PORT
from tests.simulation.diary import Diary
from tests.simulation.frames import DropFrames, WireFrame, content
from tests.simulation.host import Host
from tests.simulation.simloop import SimLoop

TEXT, BINARY = 1, 2
NEVER = 1_000_000_000


class Trouble:
    """The faults of one schedule. What has an end gets it by itself, at the latest by `end`."""

    def __init__(self, loop: SimLoop, diary: Diary, *, loses_frames: bool) -> None:
        self._loop = loop
        self._network = loop.network
        self._diary = diary
        self._repairs: dict[asyncio.TimerHandle, Callable[[], None]] = {}
        self._losing: dict[Link, Loss] = {}
        if loses_frames:
            loop.network.on_link = self._watch

    def end(self) -> None:
        """End all faults that are under way."""
        repairs, self._repairs = self._repairs, {}
        for timer, repair in repairs.items():
            timer.cancel()
            repair()
        for loss in self._losing.values():
            loss.wanted = False
        self._network.heal()

    def cut(self, host: Host, rng: Random) -> None:
        """Cut a link of a host; each end is told at once, later, or never."""
        for link in self._some_link(host, rng):
            told = [rng.choice([0.0, 0.0, 1.0, None]) for _ in range(2)]
            self._diary.note("network", f"cuts link {link.index}, telling after {told}")
            link.cut(client=told[0], server=told[1])

    def half_open(self, host: Host, rng: Random) -> None:
        """Let nothing arrive over a link, in one direction or both, for a while."""
        for link in self._some_link(host, rng):
            direction: Direction | None = rng.choice(["up", "down", None])
            link.half_open(direction)
            self._for_a_while(f"half-opens link {link.index} {direction}", link.heal, rng)

    def stall(self, host: Host, rng: Random) -> None:
        """Let a program not read for a while."""
        for link in self._some_link(host, rng):
            direction: Direction = rng.choice(["up", "down", "down"])
            link.stall(direction)
            self._for_a_while(f"stalls link {link.index} {direction}", partial(link.unstall, direction), rng)

    def slow(self, host: Host, rng: Random) -> None:
        """Make a link slow for a while."""
        for link in self._some_link(host, rng):
            link.reshape(Shape((0.05, 1.0), rng.choice([None, 2_000.0]), 4_096, 0.5))
            quick = partial(link.reshape, self._network.shape)
            self._for_a_while(f"slows link {link.index} down", quick, rng)

    def partition(self, host: Host, rng: Random) -> None:
        """Cut a host off for a while, from new connections too."""
        self._network.partition(host)
        self._for_a_while(f"cuts {host.name} off", lambda: self._network.heal(host), rng)

    def refuse(self, rng: Random) -> None:
        """Refuse new connections for a while."""
        self._network.refuse(HOST_NAME, PORT)
        self._for_a_while("refuses connections", lambda: self._network.admit(HOST_NAME, PORT), rng)

    def lose_frame(self, host: Host, rng: Random, *, syncs_too: bool) -> None:
        """Let the next frame of a session that is sent to a host vanish."""
        for link in self._some_link(host, rng):
            if link in self._losing:
                self._diary.note("network", f"will lose a frame of link {link.index}")
                self._losing[link].wanted = True
                self._losing[link].syncs_too = syncs_too

    def _some_link(self, host: Host, rng: Random) -> list[Link]:
        links = self._network.links_of(host)
        return [rng.choice(links)] if links else []

    def _for_a_while(self, what: str, repair: Callable[[], None], rng: Random) -> None:
        seconds = rng.choice([0.1, 1.0, 5.0, 40.0])
        self._diary.note("network", f"{what} for {seconds} s")

        def over() -> None:
            del self._repairs[timer]
            repair()

        timer = self._loop.call_later(seconds, over)
        self._repairs[timer] = repair

    def _watch(self, link: Link) -> None:
        loss = self._losing[link] = Loss(lambda frame: self._diary.note("network", f"loses {frame!r}"))
        link.filter = DropFrames(loss, count=NEVER)


class Loss:
    """Chooses the frame that a link loses: one of a session's stream, which the next one gives away.

    Answers and marks never vanish: TCP loses nothing, and the protocol promises to notice a hole in a stream
    by what follows it.
    """

    def __init__(self, tell: Callable[[bytes], None]) -> None:
        self.wanted = False
        self.syncs_too = False
        self._tell = tell

    def __call__(self, frame: WireFrame) -> bool:
        """Say whether to lose this frame; once, until it is wanted again."""
        if not self.wanted or frame.opcode not in {TEXT, BINARY}:
            return False
        tag = _tag(frame)
        if tag in {b"d", b"change", b"skip"} or (tag == b"sync" and self.syncs_too):
            self.wanted = False
            self._tell(content(frame)[:60])
            return True
        return False


def _tag(frame: WireFrame) -> bytes:
    """Return the tag of a frame in either encoding, if it is short enough for an ordinary one."""
    payload = content(frame)
    if frame.opcode == TEXT:
        return payload[2 : payload.find(b'"', 2)]
    return payload[2 : 2 + (payload[1] & 0x1F)] if payload[1] & 0xE0 == 0xA0 else b""
