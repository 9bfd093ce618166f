"""Syncs that are shared: read once and encoded once while a session stands still, and never shown later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

# apsw's stubs name collections.abc.Buffer, which the types of Python 3.11 do not know.
# pyright: reportUnknownMemberType=false
from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.codec import JSON, MSGPACK
from midstream.protocol.frames import Result, Sync, SyncPayload
from midstream.protocol.model import TextPart
from midstream.server.connections.answers import encoded, result_frame, sync_frame
from midstream.server.sessions.shelf import SharedSync, Shelf
from tests.server.sessions.house import House, Street, decoded, in_simulation
from tests.server.sessions.recorder import Recorder
from tests.server.sessions.test_reading import cursor_of, say, talk

if TYPE_CHECKING:
    import apsw

    from midstream.protocol.calls import Cursor
    from midstream.server.sessions.commands import Answer

READERS = 100


async def come(house: House, cursor: Cursor | None = None, *, limit: int = 50) -> list[calls.SubscribeResult]:
    """A hundred subscribers at once, and what each of them is answered, as the session gave it."""
    params = calls.SubscribeParams(session_id="s", cursor=cursor or UNSET, limit=limit)
    recorders = [Recorder() for _ in range(READERS)]
    answers: list[Answer] = await asyncio.gather(
        *(house.post("subscribe", params, subscriber=one) for one in recorders)
    )
    for one in recorders:
        house.registry.leave("s", one)
    results = [answer for answer in answers if isinstance(answer, calls.SubscribeResult)]
    assert len(results) == READERS
    return results


async def statements(house: House) -> list[str]:
    """What the reader is asked for from now on."""
    seen: list[str] = []

    def trace(cursor: apsw.Cursor, sql: str, bindings: object) -> bool:
        del cursor, bindings
        if sql.startswith("SELECT"):
            seen.append(sql)
        return True

    def begin(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    await house.database.read(begin)
    seen.clear()
    return seen


@in_simulation
async def test_a_hundred_who_come_at_once_are_read_for_once_and_encoded_once(street: Street) -> None:
    """Also while a turn runs; and those who number their calls alike get the very same bytes."""
    async with street.house() as house:
        await house.create()
        await talk(house, 5)
        turn = await house.begin()
        await say(turn, "some")
        seen = await statements(house)
        results = await come(house)
        assert len(seen) == 3
        assert len({id(result.sync) for result in results}) == 1
        for codec in (MSGPACK, JSON):
            frames = [result_frame(codec, 7, result) for result in results]
            assert len({id(frame) for frame in frames}) == 1


@in_simulation
async def test_those_who_missed_the_same_are_caught_up_alike(street: Street) -> None:
    """From the history, and from the store after a restart."""
    async with street.house() as house:
        await house.create()
        await talk(house, 2)
        cursor = await cursor_of(house)
        await talk(house, 2, "more")
        results = await come(house, cursor)
        assert {result.sync.mode for result in results} == {"replay"}
        assert len({id(result.sync) for result in results}) == 1
    async with street.house() as house:
        seen = await statements(house)
        results = await come(house, cursor)
        assert {result.sync.mode for result in results} == {"catchup"}
        assert len({id(result.sync) for result in results}) == 1
        first = len(seen)
        await come(house, cursor)
        assert len(seen) == first


@in_simulation
async def test_an_answer_never_shows_an_older_version(street: Street) -> None:
    """After each change, streamed or committed, everybody gets what is there now (SPEC 3.7)."""
    async with street.house() as house:
        await house.create()
        watcher = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            for word in ("one ", "two ", "three "):
                await text.append(word)
                [result, *_] = await come(house)
                page = await house.page()
                assert result.sync.version == page.version == watcher.replica.version
                assert decoded(calls.SubscribeResult, result).sync.messages[1].parts == page.items[1].parts
        await house.complete(turn)
        [result, *_] = await come(house)
        assert result.sync.version == (await house.session()).version


@in_simulation
async def test_other_questions_get_other_answers(street: Street) -> None:
    """What was asked for is part of what is kept: the limit, and whether internal messages are shown."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        await turn.internal(TextPart(text="unseen"))
        for limit, count in ((1, 1), (50, 1), (1, 1)):
            results = await come(house, limit=limit)
            assert {len(result.sync.messages) for result in results} == {count}
        internal = Recorder(include_internal=True)
        await house.subscribe(internal)
        assert len(internal.replica.messages()) == 2


def payload(text: int = 10, version: int = 1) -> SyncPayload:
    """A sync of about so many bytes."""
    return SyncPayload(mode="reset", epoch="e" * text, version=version, has_more=False)


async def test_a_shared_sync_is_encoded_as_any_other() -> None:
    """In both codecs, in an answer and in a frame of its own."""
    shelf = Shelf()
    plain = payload()
    shared = shelf.keep("s", 1, 1, plain)
    for codec in (MSGPACK, JSON):
        assert encoded(codec, shared) == encoded(codec, plain)
        for call_id in (0, 1, 200, 70_000, 2**53 - 1, *range(20)):
            answer = calls.SubscribeResult(channel=3, sync=plain)
            expected = codec.encode(Result(call_id, codec.raw(answer)))
            assert result_frame(codec, call_id, answer) == expected
            assert result_frame(codec, call_id, calls.SubscribeResult(channel=3, sync=shared)) == expected
        assert sync_frame(codec, 3, shared) == sync_frame(codec, 3, plain) == codec.encode(Sync(3, plain))


async def test_what_is_kept_is_bounded() -> None:
    """A few syncs a session, and all of them together in bytes; the last one asked for is kept longest."""
    shelf = Shelf(max_bytes=200_000)
    for session in range(50):
        for key in range(10):
            shelf.keep(session, 1, key, payload(1_000))
            assert shelf.size <= 200_000
        assert shelf.find(session, 1, 9) is not None
        assert shelf.find(session, 1, 0) is None
    assert shelf.find(0, 1, 9) is None
    huge = shelf.keep("huge", 1, 1, payload(1_000_000))
    assert isinstance(huge, SharedSync)
    assert shelf.size == 0


async def test_what_was_kept_of_another_state_is_forgotten() -> None:
    """It is not found again, not even if the state came back."""
    shelf = Shelf()
    kept = shelf.keep("s", 1, "asked", payload())
    assert shelf.find("s", 1, "asked") is kept
    assert shelf.find("other", 1, "asked") is None
    assert shelf.find("s", 2, "asked") is None
    assert shelf.find("s", 1, "asked") is None
    assert shelf.size == 0
    shelf.keep("s", 1, "asked", payload())
    shelf.keep("s", 2, "else", payload())
    assert shelf.find("s", 2, "asked") is None


@in_simulation
async def test_what_nobody_asks_for_is_forgotten(street: Street) -> None:
    """After five seconds; what is asked for meanwhile is kept."""
    del street
    shelf = Shelf()
    shelf.keep("quiet", 1, 1, payload())
    shelf.keep("busy", 1, 1, payload())
    for _ in range(4):
        await asyncio.sleep(2)
        assert shelf.find("busy", 1, 1) is not None
    assert shelf.find("quiet", 1, 1) is None
    await asyncio.sleep(6)
    assert shelf.size == 0
