"""What happens when five thousand clients come back at once?

``python -m bench.storm`` has 5,000 clients connect at the same time, say hello, and subscribe without a
cursor, each to be told the session with its 50 messages: all to one session, or each to one of its own, which
the server holds in memory or has to read. Meanwhile one agent says 20 tokens a second in another session, and
what its 10 readers wait for them is measured. A storm is over when the last client has its page; then each
must get what is said next. About 100 seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from bench.contenders import EPOLL, Contender, midstream, midstream_script, session
from bench.fan_out import FRAME_BYTES, TOKEN_BYTES
from bench.latency import STAMPED_BYTES
from bench.race import LineProcess, Load, Report, RunFailed, course, loaded, served
from bench.report import Goal, Measured, conclude, table

HISTORY: Final = 50
"""Messages of each session."""
READERS: Final = 10
RATE: Final = 20.0
"""Tokens in a second that the honest agent says."""
CALM_SECONDS: Final = 2.0
ALIKE_BYTES: Final = 16
"""What answers of different sessions may differ by in length: channels and versions are not equally long."""
PROOF: Final = 3
"""Tokens that each client must get after the storm."""
STORM_SECONDS: Final = 6.0
HONEST_MS: Final = 250.0


class Scene(NamedTuple):
    """A storm of one kind."""

    name: str
    options: tuple[str, ...]
    sessions: int
    """How many sessions the clients come back to."""
    asleep: bool
    """Whether no agent runs in them until the end."""

    @property
    def contender(self) -> Contender:
        """The server, with one session more: the honest one."""
        options = ("--sessions", str(self.sessions + 1), "--history", str(HISTORY), *self.options)
        return midstream(*options, *(["--resting"] if self.asleep else []))


class Storm(NamedTuple):
    """One storm, as it was seen from outside."""

    back: Report
    """Of the clients that came back."""
    honest: Report
    """Of the readers of the other session, meanwhile."""
    cpu: float
    """Seconds of CPU that the server took until everybody was back."""


class Server:
    """The server with its clients."""

    def __init__(self, process: LineProcess, scene: Scene, crowd: Load, honest: Load) -> None:
        """Take them over; the honest readers are connected."""
        self._process = process
        self._scene = scene
        self._crowd = crowd
        self._honest = honest

    def calm(self) -> Report:
        """Let the honest agent speak while nothing else happens."""
        tokens = self._begin_to_speak(CALM_SECONDS)
        return self._spoken(tokens)

    def storm(self, clients: int, seconds: float) -> Storm:
        """Have so many clients come back, which should take about so many seconds."""
        before = self.settled()
        tokens = self._begin_to_speak(seconds)
        back = self._crowd.open(clients)
        honest = self._spoken(tokens)
        cpu = float(self._process.ask("cpu")) - before
        least, most = back.answer_bytes
        if not back.equal or most - least > ALIKE_BYTES:
            raise RunFailed(f"{self._scene.name}: the answers have {least} to {most} bytes, and differ")
        return Storm(back, honest, cpu)

    def prove(self) -> None:
        """Have every agent say something, and check that every client gets it."""
        rooms = self._scene.sessions + 1
        if self._scene.asleep:
            self._do(f"wake {rooms}")
        self._crowd.begin(PROOF, TOKEN_BYTES)
        self._honest.begin(PROOF, TOKEN_BYTES)
        self._process.tell(f"rooms {rooms} {PROOF} {FRAME_BYTES}")
        reports = (self._crowd.wait(), self._honest.wait())
        self._done()
        if not all(report.equal for report in reports):
            raise RunFailed(f"{self._scene.name}: two clients of a session were told different things")

    def leave(self) -> None:
        """Cut the connections of all but the honest readers."""
        self._crowd.close()

    def settled(self) -> float:
        """Wait until the server has nothing to do; return the seconds of CPU that it took so far."""
        last = -1.0
        while (cpu := float(self._process.ask("cpu"))) - last > 0.005:
            last = cpu
            time.sleep(0.1)
        return cpu

    def _begin_to_speak(self, seconds: float) -> int:
        tokens = max(5, round(RATE * seconds))
        self._honest.begin(tokens, STAMPED_BYTES)
        self._process.tell(f"pace 1 {RATE} {tokens}")
        return tokens

    def _spoken(self, tokens: int) -> Report:
        report = self._honest.wait()
        self._done()
        if report.samples != tokens * READERS or not report.equal:
            raise RunFailed(f"{self._scene.name}: {report.samples} honest deliveries of {tokens * READERS}")
        return report

    def _do(self, command: str) -> None:
        self._process.tell(command)
        self._done()

    def _done(self) -> None:
        if (answer := self._process.answer()) != "done":
            raise RunFailed(f"{self._scene.name}: the server said {answer!r}")


@contextmanager
def started(scene: Scene, clients: int) -> Generator[Server]:
    """Run the server, and connect the honest readers."""
    contender = scene.contender
    script = midstream_script(session(1 + number) for number in range(scene.sessions))
    with ExitStack() as stack:
        process, host, port = stack.enter_context(served(contender))
        crowd = stack.enter_context(loaded(contender, script, host, port, clients))
        honest = stack.enter_context(loaded(contender, midstream_script([session(0)]), host, port, READERS))
        if scene.asleep:
            process.tell("wake 1")
            process.answer()
        honest.open()
        yield Server(process, scene, crowd, honest)
        honest.close()


def measure(scene: Scene, clients: int, runs: int) -> tuple[Report, list[Storm]]:
    """Return what the honest readers wait in calm, and so many storms behind a first one."""
    storms: list[Storm] = []
    with started(scene, clients) as server:
        calm = server.calm()
        seconds = CALM_SECONDS
        for _ in range(runs + 1):
            storms.append(server.storm(clients, seconds))
            seconds = storms[-1].back.seconds
            if len(storms) == runs + 1 or not scene.asleep:
                server.prove()
            server.leave()
    return calm, storms[1:]


def handshakes(clients: int, runs: int) -> Measured:
    """Return how long so many handshakes with the C server take, which tells nobody anything."""
    with course(EPOLL, clients) as it:
        seconds: list[float] = []
        for _ in range(runs):
            it.load.close()
            seconds.append(it.load.open(clients).seconds)
    return Measured(tuple(seconds))


def row(name: str, calm: Report, storms: list[Storm]) -> list[str]:
    """Return the line of one kind of storm."""
    seconds = Measured(tuple(storm.back.seconds for storm in storms))
    half = Measured(tuple(storm.back.p50_us / 1e6 for storm in storms))
    cpu = Measured(tuple(storm.cpu for storm in storms))
    honest = Measured(tuple(storm.honest.p99_us for storm in storms))
    size = storms[-1].back.answer_bytes[1]
    return [
        name,
        seconds.shown(digits=2),
        half.shown(digits=2),
        cpu.shown(digits=2),
        f"{size / 1_000:.1f}",
        honest.shown(1_000, 1),
        f"{calm.p99_us / 1_000:.1f}",
    ]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    clients, runs = options.clients, options.runs
    with tempfile.TemporaryDirectory() as directory:
        kept = ("--database", f"{directory}/storm.db")
        scenes = (
            Scene("one session", (), 1, asleep=False),
            Scene("a session each, not loaded", (*kept, "--idle-seconds", "0"), clients, asleep=True),
            Scene("a session each, loaded", kept, clients, asleep=True),
        )
        found = {scene.name: measure(scene, clients, runs) for scene in scenes}
    limit = handshakes(clients, runs)
    lines = [row(name, *it) for name, it in found.items()]
    lines.append(["handshakes of C epoll alone", limit.shown(digits=2), "", "", "", "", ""])
    first = found[scenes[0].name][1]
    every = [storm for _, storms in found.values() for storm in storms]
    retries, refused = (
        sum(storm.back.retries for storm in every),
        sum(storm.back.refused for storm in every),
    )
    goals = [
        Goal(
            f"{clients:,} clients of one session back",
            Measured(tuple(storm.back.seconds for storm in first)).median,
            STORM_SECONDS,
            at_least=False,
            unit="s",
        ),
        Goal(
            "honest readers' p99 meanwhile",
            Measured(tuple(storm.honest.p99_us / 1_000 for storm in first)).median,
            HONEST_MS,
            at_least=False,
            unit="ms",
        ),
    ]
    head = [f"{clients:,} clients", "all back, s", "half back, s", "server CPU, s", "page, KB"]
    head += ["honest p99, ms", "in calm, ms"]
    notes = [
        f"medians (least to most) of {runs} storms after a first one; sessions of {HISTORY} messages",
        f"connections that were refused or not opened in time, and tried again: {retries:,}",
        f"calls that were refused, and made again: {refused:,}",
    ]
    figures = {
        name: {
            "seconds": [storm.back.seconds for storm in storms],
            "cpu": [storm.cpu for storm in storms],
            "honest_p99_us": [storm.honest.p99_us for storm in storms],
            "calm_p99_us": calm.p99_us,
        }
        for name, (calm, storms) in found.items()
    }
    sys.exit(conclude("storm", table(head, lines), figures, goals, notes))


if __name__ == "__main__":
    main()
