"""How many bytes does a token cost, and how many a reconnect?

``python -m bench.delta_bytes`` counts what TCP carries on real connections to a real server process, prints a
table with the budget of each number, and exits with 1 where one is above it. It takes about 20 seconds.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
import apsw

from bench.conversation import Conversation, conversation
from bench.serving import TOKEN
from bench.wire import CountingReader
from midstream.protocol.calls import SessionParams, SessionResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.frames import ShortDelta
from midstream.protocol.merge import Replica
from midstream.protocol.model import Message, Part

HISTORY: Final = 500
"""Messages that did not change, for which a reconnect must pay nothing."""
SEEN: Final = 250
"""Tokens of the text that the reader saw before it went away."""
TRIES: Final = 3
TOKEN_BUDGET: Final = 32
OVERHEAD: Final = 512
"""What a reconnect may cost beside what was missed."""
MISSED: Final = (100, 1_000, 10_000, 100_000)
LONG_LIVED: Final = (
    "UPDATE sessions SET version = 1000000, ceiling = 1000000, message_count = 10000, first_sequence = 10001"
)
LATER_MS: Final = 1_200_000


class Row(NamedTuple):
    """One measured number of bytes, and what it may be at most; None where nothing is promised."""

    what: str
    measured: int
    budget: int | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether it is within its budget."""
        if self.budget is None:
            return ""
        return "PASS" if self.measured <= self.budget else "FAIL"


async def tokens(talk: Conversation, what: str, codec: Codec = MSGPACK) -> list[Row]:
    """Count what comes for tokens in the middle of a text: after a long pause, one by one, and joined."""
    async with talk.subscribed(codec) as reader:
        await talk.stream(reader, 2)
        await talk.server.tell("later", LATER_MS)
        rows = [await said(talk, reader, 1, f"a token of 4 characters after a pause, {what}")]
        rows += [
            # a pause of the machine would count as one of the agent
            min([await said(talk, reader, count, name) for _ in range(TRIES)], key=attrgetter("measured"))
            for count, name in (
                (1, f"a token of 4 characters, {what}"),
                (10, f"ten tokens that join, {what}"),
            )
        ]
        await talk.server.tell("end")
        await reader.until_idle()
    return rows


async def said(talk: Conversation, reader: CountingReader, count: int, what: str) -> Row:
    """Count what comes for so many tokens in one version."""
    before, version = reader.relay.down, talk.replica.version
    updated_at = talk.replica.messages()[-1].updated_at
    await talk.server.tell("join", count)
    frame = await reader.receive()
    cost = reader.relay.down - before
    if not isinstance(frame, ShortDelta) or frame.text != TOKEN * count or frame.version != version + 1:
        raise TypeError(f"{count} tokens came as {frame}")
    last = talk.replica.messages()[-1]
    if last.updated_at != updated_at + frame.step:
        raise TypeError(f"{frame} led from {updated_at} to {last.updated_at}")
    where = f"version {frame.version:,}, message {last.sequence:,}, {frame.step:,} ms after the one before"
    budget = TOKEN_BUDGET if count == 1 else 13 * len(frame.text) // 10
    return Row(what, cost, budget if reader.codec is MSGPACK else None, where)


async def missed(talk: Conversation, count: int, *, end: bool) -> Row:
    """Count what a reader's return costs that missed so many bytes of text, and perhaps their end."""
    async with talk.subscribed() as reader:
        await talk.stream(reader, SEEN)
    version = talk.replica.version
    await talk.server.tell("say", count // len(TOKEN))
    if end:
        await talk.server.tell("end")
    cost, asked = await talk.reconnect()
    note = f"{talk.replica.version - version:,} versions, asked for with {asked} bytes"
    if not end:
        await talk.server.tell("end")
        await talk.reconnect()
    what = f"{count:,} bytes of text missed{', and the end of the turn' if end else ''}"
    return Row(what, cost, count + OVERHEAD, note)


async def restarted(talk: Conversation, *, clean: bool, steps: int) -> Row:
    """Count what a reader's return costs whose server ended and started again in the middle of a text."""
    async with talk.subscribed() as reader:
        await talk.stream(reader, SEEN)
    await talk.server.tell("say", SEEN)
    for _ in range(1, steps):
        await talk.server.tell("step")
        await talk.server.tell("say", SEEN)
    before = talk.replica.messages()
    await talk.restart(clean=clean)
    cost, asked = await talk.reconnect()
    changed = changed_parts(before, talk.replica.messages())
    size = sum(len(MSGPACK.encode(part)) for part in changed)
    note = f"{len(changed)} parts of {size:,} bytes changed, asked for with {asked} bytes"
    how = "clean" if clean else "kill -9"
    return Row(f"a restart meanwhile ({how}, in step {steps})", cost, size + OVERHEAD, note)


def changed_parts(before: list[Message], after: list[Message]) -> list[Part]:
    """Return the parts that changed, those of a message that streamed included (SPEC 9)."""
    streamed = {message.sequence for message in before if message.state == "streaming"}
    old = dict(placed(before))
    return [part for place, part in placed(after) if place[0] in streamed or old.get(place) != part]


def placed(messages: Iterable[Message]) -> Iterable[tuple[tuple[int, int], Part]]:
    """Yield each part with the sequences of its message and of itself."""
    return (((message.sequence, part.sequence), part) for message in messages for part in message.parts)


async def make_long_lived(talk: Conversation) -> None:
    """Give the session the numbers of one that has lived long and was cleared."""
    async with talk.connected() as reader:
        params = SessionParams(session_id=talk.replica.session_id)
        await reader.call("sessions.clear", params, SessionResult)
    await talk.restart(clean=True)
    await talk.server.stop()
    connection = apsw.Connection(str(talk.path))
    connection.execute(LONG_LIVED)
    connection.close()
    await talk.restart(clean=True)
    await talk.server.tell("later", LATER_MS)  # as far as the server before it was
    talk.replica = Replica(talk.replica.session_id)


async def measure(directory: str) -> list[Row]:
    """Measure everything in one conversation."""
    async with conversation(Path(directory) / "bench.db") as talk:
        await talk.begin(HISTORY)
        rows = await tokens(talk, "young session")
        rows += [await missed(talk, count, end=end) for end in (False, True) for count in MISSED]
        rows += [
            await restarted(talk, clean=clean, steps=steps) for clean in (True, False) for steps in (1, 3)
        ]
        await make_long_lived(talk)
        rows += await tokens(talk, "long-lived session")
        rows += await tokens(talk, "long-lived session, in JSON", JSON)
    return rows


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        rows = asyncio.run(measure(directory))
    width = max(len(row.what) for row in rows)
    print(f"{'':{width}}  {'bytes':>8}  {'budget':>8}")
    for row in rows:
        budget = "" if row.budget is None else f"{row.budget:,}"
        print(f"{row.what:{width}}  {row.measured:>8,}  {budget:>8}  {row.verdict:4}  ({row.note})")
    sys.exit(any(row.verdict == "FAIL" for row in rows))


if __name__ == "__main__":
    main()
