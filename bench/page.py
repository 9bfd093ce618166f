"""What does a page cost the server, anywhere in a long conversation?

``python -m bench.page [DIRECTORY]`` asks for pages of 50 messages of 2 KB (``messages``) at random places of
sessions of 1,000, 100,000 and 1,000,000 messages, one page after another, and counts the CPU of the whole
process: from the call frame, as it came, to the WebSocket messages that are ready to be written. Nothing is
written to a socket. The messages that are not asked for have a few bytes each, so that the largest session is
made in half a minute: they are as many rows of the tables and their indexes as long ones. About a minute.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from bench.asker import Asker
from bench.inside import Inside, inside
from bench.report import Goal, Measured, conclude, table
from midstream.protocol.calls import MessagesParams
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.model import Session, TextPart, Turn
from midstream.server import interpreter
from midstream.server.storage import rows, store
from midstream.server.storage.database import Database
from midstream.server.storage.records import LedgerRow
from midstream.server.storage.schema import migrate

if TYPE_CHECKING:
    import apsw
SESSION: Final = "5e0ac1b2-7f0e-4f65-9f3f-6f0b7c1a2d3e"
MESSAGES: Final = (1_000, 100_000, 1_000_000)
LIMIT: Final = 50
BODY: Final = 2_048
PLACES: Final = 300
"""Pages that are asked for, in each of the rounds."""
ROUNDS: Final = 5
PAGE_MS: Final = 0.3
"""Milliseconds of CPU that a page may cost."""
NOW: Final = 1_700_000_000_000

_MESSAGE_ROWS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO messages (session_no, sequence, message_id, turn_id, revision, created_version, role, visibility,
    state, created_at, updated_at, part_count, is_open)
SELECT 1, i, printf('msg_%013d', i), printf('turn_%013d', (i + 1) / 2), i + 1, i + 1,
    iif(i % 2, 'user', 'agent'), 'visible', iif(i % 2, NULL, 'done'), ?2 + i, ?2 + i, 1, 0 FROM n
"""
_PART_ROWS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO parts (session_no, message_sequence, sequence, revision, body) SELECT 1, i, 1, i + 1, ?2 FROM n
"""
_TURN_ROWS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO turns (session_no, turn_id, revision, body)
SELECT 1, printf('turn_%013d', i), 2 * i,
    CAST(replace(CAST(?2 AS TEXT), 'turn_0000000000000', printf('turn_%013d', i)) AS BLOB) FROM n
"""
_LONG = "UPDATE parts SET body = ? WHERE session_no = 1 AND message_sequence BETWEEN ? AND ?"


class Cost(NamedTuple):
    """What pages cost in one session and one codec, in ms a page: all of it, and the event loop's share."""

    messages: int
    codec: str
    size: int
    all: Measured
    loop: Measured


def fill(connection: apsw.Connection, *, count: int, places: list[int]) -> None:
    """Write a session of ``count`` messages, those of the pages below ``places`` with 2 KB each."""
    session = Session(
        session_id=SESSION,
        revision=count + 1,
        metadata={},
        created_at=NOW,
        updated_at=NOW,
        first_sequence=1,
        message_count=count,
        queue=[],
        pending_interactions=0,
    )
    ledger = LedgerRow(
        version=count + 1,
        ceiling=count + 1,
        epoch="0123456789abcdef",
        generation=0,
        dirty=False,
        cleared_version=0,
        last_time=NOW,
    )
    store.create_session(connection, session, ledger)
    short, long = (
        rows.encode(TextPart(part_id="part_0123456789abc", sequence=1, text="x" * size))
        for size in (10, BODY)
    )
    turn = Turn(
        turn_id="turn_0000000000000",
        revision=2,
        state="completed",
        phase="streaming",
        phase_since=NOW,
        started_at=NOW,
        finished_at=NOW,
    )
    connection.execute(_MESSAGE_ROWS, (count, NOW))
    connection.execute(_PART_ROWS, (count, short))
    connection.execute(_TURN_ROWS, (count // 2, rows.encode(turn)))
    for place in places:
        connection.execute(_LONG, (long, place - LIMIT, place - 1))


def page_below(place: int) -> MessagesParams:
    """Return what asks for the page below a place."""
    return MessagesParams(session_id=SESSION, before_sequence=place, limit=LIMIT)


async def cost(house: Inside, codec: Codec, count: int, places: list[int]) -> Cost:
    """Ask for the pages below all places, round by round."""
    asker, rng = Asker(house, codec), Random(count)
    everything: list[float] = []
    loop: list[float] = []
    size = 0
    for round_number in range(ROUNDS + 1):
        calls = [
            (number, asker.call(number, "messages", page_below(place)))
            for number, place in enumerate(rng.choices(places, k=PLACES))
        ]
        all_before, loop_before = time.process_time(), time.thread_time()
        answers = [await asker.ask(number, call) for number, call in calls]
        took = time.process_time() - all_before, time.thread_time() - loop_before
        size = min(sum(map(len, answer)) for answer in answers)
        if size < LIMIT * BODY:
            raise RuntimeError("a page was not whole")
        if round_number:  # the first one warms up
            everything.append(took[0] / PLACES * 1000)
            loop.append(took[1] / PLACES * 1000)
    return Cost(count, codec.name, size, Measured(tuple(everything)), Measured(tuple(loop)))


async def measure(directory: str | None, count: int) -> list[Cost]:
    """Make a session, and ask for its pages in both codecs."""
    rng = Random(count)
    most = count // LIMIT
    places = [place * LIMIT + 1 for place in rng.sample(range(1, most + 1), min(PLACES, most))]
    with tempfile.TemporaryDirectory(dir=directory) as place:
        path = Path(place) / "bench.db"
        database = await Database.open(path, migrate=migrate, synchronous="OFF")
        await database.write(partial(fill, count=count, places=places))
        await database.close()
        async with inside(path) as house:
            interpreter.tune()
            return [await cost(house, codec, count, places) for codec in (MSGPACK, JSON)]


def main() -> int:
    """Measure and print."""
    directory = sys.argv[1] if len(sys.argv) > 1 else None
    costs = [one for count in MESSAGES for one in asyncio.run(measure(directory, count))]
    lines = [
        [
            f"{one.messages:,}, {one.codec}",
            f"{one.size:,}",
            one.all.shown(digits=3),
            one.loop.shown(digits=3),
        ]
        for one in costs
    ]
    largest = next(one for one in costs if one.messages == MESSAGES[-1] and one.codec == MSGPACK.name)
    goals = [
        Goal(
            f"a page of {LIMIT} of {largest.messages:,}",
            largest.all.median,
            PAGE_MS,
            at_least=False,
            unit="ms",
        )
    ]
    return conclude(
        "page",
        table(("messages there are, codec", "bytes", "CPU ms a page", "of it the event loop"), lines),
        {"costs": [one._asdict() for one in costs]},
        goals,
        ["Pages lie in the memory of the machine; each is asked for when the one before was answered."],
    )


if __name__ == "__main__":
    sys.exit(main())
