"""What is read of a session: the live state laid over the store, as pages, syncs and digests."""

from __future__ import annotations

import asyncio

from msgspec import UNSET, structs

from midstream.agents import Turn
from midstream.protocol import calls
from midstream.protocol.calls import Cursor
from midstream.protocol.digest import message_digest
from midstream.protocol.frames import Sync, SyncPayload
from midstream.protocol.limits import Limits
from midstream.protocol.model import TextPart
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import House, Street, decoded, in_simulation, parts_of, refusal
from tests.server.sessions.recorder import Recorder


async def sync(
    house: House, cursor: Cursor | None = None, *, limit: int = 0, include_internal: bool = False
) -> SyncPayload:
    """What a subscriber gets."""
    params = calls.SubscribeParams(
        session_id="s", cursor=cursor or UNSET, limit=limit or UNSET, include_internal=include_internal
    )
    subscriber = Recorder(include_internal=include_internal)
    answer = decoded(calls.SubscribeResult, await house.post("subscribe", params, subscriber=subscriber))
    house.registry.leave("s", subscriber)
    return answer.sync


async def cursor_of(house: House) -> Cursor:
    """The cursor of one who has everything now."""
    payload = await sync(house)
    return Cursor(epoch=payload.epoch, version=payload.version, durable=payload.committed())


async def say(turn: Turn, *texts: str) -> None:
    """Write a step with these texts."""
    async with turn.step() as step:
        for part in texts:
            async with step.text() as text:
                await text.append(part)


async def talk(house: House, count: int, name: str = "m") -> None:
    """Let turns run that answer."""
    for number in range(count):
        turn = await house.begin(f"{name}{number}")
        await say(turn, f"answer {number}")
        await house.complete(turn)


# Pages


@in_simulation
async def test_a_page_shows_what_streams_and_the_stored_view_does_not(street: Street) -> None:
    """At the version of the stream, and at that of the last commit."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        live, stored = await house.page(), await house.page(stored=True)
        assert parts_of(live.items[1])[0]["text"] == "half"
        assert parts_of(stored.items[1])[0]["text"] == ""
        assert live.version > stored.version
        session = await house.session()
        assert live.version == session.version
        assert [one.turn_id for one in live.turns] == [turn.turn_id]


@in_simulation
async def test_pages_walk_the_whole_conversation_while_it_goes_on(street: Street) -> None:
    """Each message once; turns come with their messages, and the running one always."""
    async with street.house() as house:
        await house.create()
        await talk(house, 12)
        turn = await house.begin("last")
        newest = await house.page(limit=5)
        walked, turns = newest.items, {one.turn_id for one in newest.turns}
        while walked[0].sequence > 1:
            page = await house.page(limit=5, before=walked[0].sequence)
            assert page.has_more == (page.items[0].sequence > 1)
            assert (page.next_before_sequence == page.start_sequence) == page.has_more
            assert (page.start_sequence, page.end_sequence) == (
                page.items[0].sequence,
                page.items[-1].sequence,
            )
            assert page.end_sequence == walked[0].sequence - 1
            assert page.turns[-1].turn_id == turn.turn_id
            assert {message.turn_id for message in page.items} <= {one.turn_id for one in page.turns}
            walked = [*page.items, *walked]
            turns |= {one.turn_id for one in page.turns}
            await say(turn, "more")
        assert [message.sequence for message in walked] == list(range(1, 26))
        assert len(turns) == 13


@in_simulation
async def test_an_empty_page_has_neither_start_nor_end(street: Street) -> None:
    """And no more; it echoes what was asked."""
    async with street.house() as house:
        await house.create()
        page = await house.page(before=7, include_internal=True)
        assert (page.items, page.has_more, page.total) == ([], False, 0)
        assert (page.start_sequence, page.end_sequence, page.next_before_sequence) == (UNSET, UNSET, UNSET)
        assert (page.before_sequence, page.include_internal) == (7, True)


@in_simulation
async def test_a_page_ends_by_the_bytes_that_it_shows(street: Street) -> None:
    """What was streamed and is not stored counts; the newest message is there however long it is."""
    limits = Limits(page_bytes=1_000)
    async with street.house(settings=Settings(limits=limits)) as house:
        await house.create()
        await talk(house, 3)
        turn = await house.begin("last")
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        assert len((await house.page()).items) == 8
        await text.append("x" * 600)
        cut = await house.page()
        assert (cut.items[-1].sequence, cut.has_more) == (8, True)
        assert 1 < len(cut.items) < 8
        await text.append("x" * 1_000)
        alone = await house.page()
        assert ([message.sequence for message in alone.items], alone.has_more) == ([8], True)
        assert len((await house.page(stored=True)).items) == 8
        payload = await sync(house, limit=50)
        assert [entry.sequence for entry in payload.messages] == [8]
        assert payload.has_more


@in_simulation
async def test_hidden_messages_do_not_count_as_more(street: Street) -> None:
    """``has_more`` looks only at what the caller sees."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        for _ in range(3):
            await turn.internal(TextPart(text="hint"))
        await say(turn, "answer")
        page = await house.page(limit=1)
        assert page.has_more
        page = await house.page(limit=1, before=5)
        assert ([message.sequence for message in page.items], page.has_more) == ([1], False)
        assert (await house.page(limit=3, include_internal=True)).has_more


# Single entities


@in_simulation
async def test_a_message_is_shown_as_it_is_now_to_those_who_may_see_it(street: Street) -> None:
    """Streamed text included; a hidden one needs the scope; a cleared one is gone."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin()
        hint = await turn.internal(TextPart(text="hint"))
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        streaming = (await house.messages())[-1]
        params = calls.MessageParams(session_id="s", message_id=streaming.message_id)
        shown = await house.call(calls.MessageResult, "message", params)
        assert (shown.message, shown.version) == (streaming, (await house.session()).version)
        hidden = calls.MessageParams(session_id="s", message_id=hint.message_id)
        assert (await refusal(house.call(calls.MessageResult, "message", hidden))).code == "not_found"
        seen = await house.call(calls.MessageResult, "message", hidden, scopes=frozenset({"internal"}))
        assert seen.message == hint
        await house.complete(turn)
        await house.clear()
        error = await refusal(house.call(calls.MessageResult, "message", params))
        assert error.details == {"kind": "message", "id": streaming.message_id}


@in_simulation
async def test_a_turn_is_found_while_it_runs_and_ever_after(street: Street) -> None:
    """By its id, and as the current one; over a clear."""
    async with street.house() as house:
        await house.create()
        assert (await house.turn()).turn is None
        turn = await house.begin()
        assert (await house.turn()).turn == (await house.turn(turn.turn_id)).turn
        ended = await house.complete(turn)
        assert (await house.turn()).turn is None
        await house.clear()
        assert (await house.turn(turn.turn_id)).turn == ended
        error = await refusal(house.turn("never"))
        assert (error.code, error.details) == ("not_found", {"kind": "turn", "id": "never"})


# Syncs


@in_simulation
async def test_without_a_cursor_a_reset_has_as_many_messages_as_asked(street: Street) -> None:
    """None without a limit, and it says whether there are any."""
    async with street.house() as house:
        await house.create()
        empty = await sync(house)
        assert (empty.mode, empty.messages, empty.has_more, empty.from_version) == ("reset", [], False, UNSET)
        await talk(house, 3)
        payload = await sync(house)
        assert (payload.messages, payload.has_more, payload.next_before_sequence) == ([], True, UNSET)
        payload = await sync(house, limit=4)
        assert [entry.sequence for entry in payload.messages] == [3, 4, 5, 6]
        assert (payload.has_more, payload.next_before_sequence) == (True, 3)
        assert len(payload.turns) == 2
        payload = await sync(house, limit=6)
        assert (payload.has_more, payload.next_before_sequence) == (False, UNSET)


@in_simulation
async def test_a_cursor_gets_the_cheapest_sync_that_serves_it(street: Street) -> None:
    """A replay where the history has it, a catch-up across restarts, a reset for what nobody knows."""
    async with street.house() as house:
        await house.create()
        old = await cursor_of(house)
        await talk(house, 2)
        here = await cursor_of(house)
        assert (await sync(house, old)).mode == "replay"
        assert (await sync(house, here)).mode == "replay"
        for unknown in (
            structs.replace(here, epoch="never"),
            structs.replace(here, version=here.version + 1),
            structs.replace(here, durable=here.durable + 1),
        ):
            assert (await sync(house, unknown, limit=2)).mode == "reset"
    async with street.house() as house:
        payload = await sync(house, old)
        assert (payload.mode, payload.from_version) == ("catchup", old.version)
        assert [entry.sequence for entry in payload.messages] == [1, 2, 3, 4]
        assert (await sync(house, here)).messages == []
        await talk(house, 1, "later ")
        assert (await sync(house, old)).mode == "catchup"
        for unknown in (
            structs.replace(here, version=here.version + 1),
            structs.replace(here, durable=here.durable + 1),
        ):
            assert (await sync(house, unknown, limit=2)).mode == "reset"


@in_simulation
async def test_a_catch_up_makes_of_an_old_replica_what_there_is_now(street: Street) -> None:
    """Whatever happened meanwhile, in both views: tools, absorbed input, hints, and what still streams."""
    async with street.house() as house:
        await house.create()
        await talk(house, 1)
        readers = [await house.subscribe(Recorder(include_internal=internal)) for internal in (False, True)]
        turn = await house.begin("a")
        await say(turn, "first", "second")
        for reader in readers:
            house.registry.leave("s", reader)
        await asyncio.sleep(100)
        async with turn.step() as step:
            call = await step.tool("t")
            await call.append_input('{"x"')
            await call.ready({"x": 1})
        await turn.internal(TextPart(text="hint"))
        await house.prompt("steer")
        await turn.take_inputs()
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("still streaming")
        await house.settled()
        for number in range(2_000):  # past what the history holds
            await turn.phase("streaming" if number % 2 else "waiting-model")
        for reader in readers:
            again = await house.resume(reader)
            joined = again.frames[0]
            assert isinstance(joined, Sync)
            assert joined.payload.mode == "catchup"
            await house.equal(again)


@in_simulation
async def test_what_is_too_much_for_a_sync_is_a_reset(street: Street) -> None:
    """Too many messages, too many bytes stored, too many bytes that only stream."""
    limits = Limits(page_messages=10, page_bytes=2_000)
    async with street.house(settings=Settings(limits=limits, history_bytes=1_000)) as house:
        await house.create()
        start = await cursor_of(house)
        await talk(house, 5)
        assert (await sync(house, start)).mode == "catchup"
        turn = await house.begin("more")
        assert (await sync(house, start)).mode == "reset"
        here = await cursor_of(house)
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("x" * 1_500)
        assert (await sync(house, here)).mode == "catchup"
        await text.append("x" * 1_500)
        assert (await sync(house, here)).mode == "reset"
        await text.done()
        await step.__aexit__(None, None, None)
        assert (await sync(house, here)).mode == "reset"


@in_simulation
async def test_a_cursor_from_before_a_clear_is_void(street: Street) -> None:
    """One from the clear on holds, also after a restart."""
    async with street.house() as house:
        await house.create()
        await talk(house, 1)
        old = await cursor_of(house)
        await house.clear()
        new = await cursor_of(house)
        assert (await sync(house, old)).mode == "reset"
        assert (await sync(house, new)).mode == "replay"
    async with street.house() as house:
        assert (await sync(house, old)).mode == "reset"
        assert (await sync(house, new)).mode == "replay"
        await house.begin("b")
        assert (await sync(house, old)).mode == "reset"
        assert (await sync(house, new)).mode == "catchup"


# Digests


@in_simulation
async def test_digests_are_those_of_the_messages_that_the_view_shows(street: Street) -> None:
    """Of what streams as well; of a range, without what is hidden or was cleared."""
    async with street.house() as house:
        await house.create()
        await talk(house, 2)
        await house.clear()
        turn = await house.begin("a")
        await turn.internal(TextPart(text="hint"))
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        for internal, expected in ((False, [5, 7]), (True, [5, 6, 7])):
            params = calls.VerifyParams(
                session_id="s", from_sequence=1, to_sequence=100, include_internal=internal
            )
            result = await house.call(calls.VerifyResult, "verify", params)
            page = await house.page(include_internal=internal)
            assert [sequence for sequence, _, _ in result.digests] == expected
            assert (result.version, result.epoch) == (page.version, page.epoch)
            assert result.digests == [
                (message.sequence, message.revision, message_digest(message)) for message in page.items
            ]
        params = calls.VerifyParams(session_id="s", from_sequence=7, to_sequence=7)
        assert len((await house.call(calls.VerifyResult, "verify", params)).digests) == 1


@in_simulation
async def test_a_catch_up_carries_what_changed_and_nothing_else(street: Street) -> None:
    """Also what only streams; no other message or part, no session, no turn that stood still."""
    async with street.house(settings=Settings(history_bytes=1)) as house:
        await house.create()
        await talk(house, 2)
        turn = await house.begin("a")
        await say(turn, "said")
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        here = await cursor_of(house)
        await text.append("more")
        payload = await sync(house, here)
        assert (payload.mode, payload.session, payload.turns) == ("catchup", UNSET, [])
        [entry] = payload.messages
        assert (entry.sequence, entry.role, entry.part_count) == (6, UNSET, 2)
        [part] = entry.parts
        assert isinstance(part, TextPart)
        assert (part.sequence, part.text) == (2, "halfmore")
        await turn.phase("waiting-model")
        assert [one.turn_id for one in (await sync(house, here)).turns] == [turn.turn_id]
