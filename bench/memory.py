"""What does a client, or a session, take of memory while nothing happens?

``python -m bench.memory`` has 5,000 clients connect to a server, which subscribe to one session or to none,
and looks at the memory that the server's process has of its own (``RssAnon``), before and meanwhile. Then it
has 5,000 sessions loaded, by a call each; 1,500 run a turn; and 2,000 clients subscribe to a session each.
Two are done twice, to see what is left when all were gone. A connection to the server of ``websockets``
alone, on which this one is built, is measured beside it. At last sessions with 100, 10,000 and 200,000
messages are loaded, and what the interpreter holds for each is counted. About a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.contenders import WEBSOCKETS, Contender, midstream_script, session
from bench.race import LineProcess, loaded, served
from bench.report import Goal, conclude, table

WARMING: Final = 300
"""Clients, and sessions, that come before it is measured: what the first ones bring about is not of each."""
TURNS: Final = 1_500
OWNERS: Final = 2_000
"""Clients that have a session each."""
ANSWER_BYTES: Final = 4_000
HISTORIES: Final = (100, 10_000, 200_000)
IDLE_SECONDS: Final = 4
"""After what time a session is let go that nobody uses."""
SHELF_SECONDS: Final = 6
"""After what time nothing is kept any more of what was read."""
KIB: Final = 1024
CLIENT_KIB: Final = 18
SESSION_KIB: Final = 8
LOST_KIB: Final = 0.5
LONG: Final = 1.05
"""What a long session may cost of a short one: numbers get longer."""


class Taken(NamedTuple):
    """What so many clients, or sessions, took."""

    name: str
    number: int
    before: int
    """Bytes of the process."""
    during: int
    after: int | None
    """Bytes when they were gone, if they went."""
    again: int | None
    """Bytes when as many came again, if they did."""

    @property
    def each(self) -> float:
        """KiB for each."""
        return (self.during - self.before) / self.number / KIB

    @property
    def lost(self) -> float:
        """KiB that each took more when they came again: what was neither given back nor free for others."""
        return 0.0 if self.again is None else (self.again - self.during) / self.number / KIB

    def row(self) -> list[str]:
        """Return a line of the table."""
        line = [self.name, f"{self.number:,}", f"{self.each:.1f}", f"{self.during / KIB**2:.0f}"]
        if self.after is None:
            return [*line, "", ""]
        return [*line, f"{self.after / KIB**2:.0f}", f"{self.lost:.2f}"]


class Quiet:
    """A server that is looked at."""

    def __init__(self, process: LineProcess, contender: Contender, host: str, port: int) -> None:
        """Look at a process."""
        self._process = process
        self._contender = contender
        self._where = host, port

    def memory(self) -> int:
        """Return the bytes that it has of its own, when it has nothing to do."""
        last = -1.0
        while (cpu := float(self._process.ask("cpu"))) - last > 0.005:
            last = cpu
            time.sleep(0.2)
        return int(self._process.ask("memory"))

    def do(self, command: str) -> None:
        """Have it do something."""
        if (answer := self._process.ask(command)) != "done":
            raise RuntimeError(f"{command!r}: the server said {answer!r}")

    def number(self, command: str) -> int:
        """Ask for a number."""
        return int(self._process.ask(command))

    def until_let_go(self) -> None:
        """Wait until no session is loaded, and nothing is kept of one."""
        end = time.monotonic() + IDLE_SECONDS + 20
        while self.number("loaded"):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.number('loaded')} sessions are still loaded")
            time.sleep(0.2)

    def sessions(self, name: str, command: str, number: int, *, times: int = 0, loaded: int = 0) -> Taken:
        """Have so many sessions loaded by a command, and so many times let go and loaded again.

        So many are loaded then in all, if there are others.
        """
        found = [self.memory()]
        for left in range(times, -1, -1):
            self.do(command)
            found.append(self.memory())
            if (there := self.number("loaded")) != (loaded or number):
                raise RuntimeError(f"{there} sessions are loaded, and not {loaded or number}")
            if left:
                self.until_let_go()
                found.append(self.memory())
        return _taken(name, number, found)

    def clients(
        self, name: str, script: str, number: int, *, times: int = 0, settle_seconds: float = 0.0
    ) -> Taken:
        """Have so many clients connect, and so many times go and come again."""
        with loaded(self._contender, script, *self._where, WARMING) as few:
            few.open()
            few.close()
        with loaded(self._contender, script, *self._where, number) as load:
            found = [self.memory()]
            for left in range(times, -1, -1):
                load.open()
                time.sleep(settle_seconds)
                found.append(self.memory())
                load.close()
                if left:
                    found.append(self.memory())
        return _taken(name, number, found)


def _taken(name: str, number: int, found: list[int]) -> Taken:
    before, during, *more = found
    return Taken(name, number, before, during, *(more or (None, None)))


@contextmanager
def quiet(contender: Contender) -> Generator[Quiet]:
    """Run a server."""
    with served(contender) as (process, host, port):
        yield Quiet(process, contender, host, port)


def server(database: Path, *options: str) -> Contender:
    """Return the server with these options."""
    words = (sys.executable, "-m", "bench.peers.quiet_server", "--database", str(database), *options)
    return Contender("midstream", "midstream", words)


def connections(folder: Path, number: int) -> list[Taken]:
    """Measure connections: of websockets alone, without a subscription, and subscribed."""
    with quiet(WEBSOCKETS) as bare:
        alone = bare.clients("connection to websockets' server alone", WEBSOCKETS.script(1), number)
    with quiet(server(folder / "idle.db")) as it:
        idle = it.clients("connection without a subscription", midstream_script([]), number)
    with quiet(server(folder / "subscribed.db")) as it:
        script = midstream_script([session(0)])
        subscribed = it.clients("connection, subscribed to one session", script, number, times=1)
    return [alone, idle, subscribed]


def sessions(folder: Path, number: int) -> list[Taken]:
    """Measure loaded sessions: at rest, after a turn, and with a subscriber each."""
    options = ("--sessions", str(number))
    turns, owners = min(TURNS, number - WARMING), min(OWNERS, number)
    with quiet(server(folder / "sessions.db", *options, "--idle-seconds", str(IDLE_SECONDS))) as it:
        it.do(f"load {WARMING}")
        it.until_let_go()
        rest = it.sessions("session, loaded", f"load {number}", number, times=1)
    with quiet(server(folder / "turns.db", *options)) as it:
        name = f"session after a turn with an answer of {ANSWER_BYTES:,} B"
        it.do(f"turn 0 {WARMING} {ANSWER_BYTES}")  # the database fills its pages meanwhile
        turned = it.sessions(name, f"turn {WARMING} {turns} {ANSWER_BYTES}", turns, loaded=WARMING + turns)
    with quiet(server(folder / "owners.db", *options)) as it:
        name = "connection, subscribed to a session of its own"
        each = it.clients(
            name, midstream_script(map(session, range(owners))), owners, settle_seconds=SHELF_SECONDS
        )
    return [rest, turned, each]


def histories(folder: Path) -> dict[int, int]:
    """Return how many bytes a loaded session takes in the interpreter, by how many messages it has."""
    lengths = (HISTORIES[0] - 2, *HISTORIES)  # the first one fills what all share
    options = ("--histories", ",".join(map(str, lengths)))
    with quiet(server(folder / "histories.db", *options)) as it:
        found = {length: it.number(f"weigh {length}") for length in lengths}
    return {length: found[length] for length in HISTORIES}


def goals(taken: list[Taken], lengths: dict[int, int]) -> list[Goal]:
    """Return what must be shown."""
    _, _, subscribed, rest, turn, _ = taken

    def most(what: str, measured: float, bound: float, unit: str) -> Goal:
        return Goal(what, measured, bound, at_least=False, unit=unit)

    shortest, longest = min(lengths), max(lengths)
    ratio = lengths[longest] / lengths[shortest]
    return [
        most("a connected, subscribed, idle client", subscribed.each, CLIENT_KIB, "KiB"),
        most("the same, more when all come again", subscribed.lost, LOST_KIB, "KiB"),
        most("a loaded session", rest.each, SESSION_KIB, "KiB"),
        most("the same, more when all are loaded again", rest.lost, LOST_KIB, "KiB"),
        most("a session after a turn, beside its text", turn.each - ANSWER_BYTES / KIB, SESSION_KIB, "KiB"),
        most(f"{longest:,} messages to {shortest:,}", ratio, LONG, "×"),  # noqa: RUF001 - the sign of a ratio
    ]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=5_000)
    number = parser.parse_args().number
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        taken = [*connections(folder, number), *sessions(folder, number)]
        lengths = histories(folder)
    head = ["at rest", "number", "KiB each", "process, MiB", "when gone, MiB", "KiB more again"]
    text = table(head, [one.row() for one in taken])
    counted = [[f"{length:,}", f"{size / KIB:.1f}"] for length, size in lengths.items()]
    text += "\n\n" + table(["messages of a loaded session", "KiB in the interpreter"], counted)
    figures: dict[str, object] = {one.name: {**one._asdict(), "each": one.each} for one in taken}
    figures["bytes by messages"] = {str(length): size for length, size in lengths.items()}
    notes = [
        "memory is what the server's process has of its own (RssAnon), once there is no garbage in it",
        "more again: what each took more when all came a second time, after all had gone",
        "what the process still has when all are gone is free in it: those who come again take that",
        "a session of many messages is read by a subscriber, and the page that it got is counted with it",
    ]
    sys.exit(conclude("memory", text, figures, goals(taken, lengths), notes))


if __name__ == "__main__":
    main()
