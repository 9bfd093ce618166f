"""Forks: a copy of what was said so far, whole or not at all, with a life of its own."""

from __future__ import annotations

import asyncio

from msgspec import UNSET, structs

from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError
from midstream.protocol.model import InteractionPart, Message, TextPart, ToolPart
from midstream.protocol.transitions import is_open
from tests.disk import Fault, broken_disk
from tests.server.sessions.house import House, Street, decoded, in_simulation, refusal
from tests.server.sessions.recorder import Recorder
from tests.server.storage.books import tables


async def fork(house: House, new_session_id: str = "f", **params: str) -> calls.SessionResult:
    """Copy the session."""
    asked = calls.ForkParams(session_id="s", new_session_id=new_session_id, **params)
    return await house.call(calls.SessionResult, "sessions.fork", asked)


async def describe(house: House, title: str) -> None:
    """Give the session a title, and metadata."""
    params = calls.UpdateParams(session_id="s", title=title, metadata={"a": 1})
    await house.call(calls.SessionResult, "sessions.update", params)


async def talk(house: House, *names: str) -> None:
    """Let some turns run, each with an answer."""
    for name in names:
        turn = await house.begin(name)
        async with turn.step() as step, step.text() as text:
            await text.append(f"answer to {name}")
        await house.complete(turn)


def bare(message: Message) -> Message:
    """A message without what a copy has of its own."""
    return structs.replace(
        message,
        message_id="",
        session_id="",
        turn_id=UNSET,
        origin=UNSET,
        revision=0,
        parts=[structs.replace(part, part_id="") for part in message.parts],
    )


@in_simulation
async def test_a_fork_says_the_same_with_ids_of_its_own(street: Street) -> None:
    """Each copy names its origin; the fork has its own versions, no turns, no queue, and knows no input."""
    async with street.house() as house:
        await house.create()
        await describe(house, "t")
        await talk(house, "a", "b")
        before = await house.session()
        made = await fork(house)
        assert (made.session.title, made.session.metadata) == ("t", {"a": 1})
        assert (made.session.queue, made.session.running_turn_id, made.version) == ([], UNSET, 1)
        originals, copies = await house.messages(), await house.messages("f")
        assert [bare(message) for message in copies] == [bare(message) for message in originals]
        assert [message.sequence for message in copies] == [1, 2, 3, 4]
        for original, copy in zip(originals, copies, strict=True):
            assert copy.message_id != original.message_id
            assert copy.turn_id is UNSET
            assert copy.origin is not UNSET
            assert (copy.origin.session_id, copy.origin.message_id, copy.origin.turn_id) == (
                "s",
                original.message_id,
                original.turn_id,
            )
        ids = [part.part_id for message in (*originals, *copies) for part in message.parts]
        assert len(set(ids)) == len(ids)
        assert await house.session() == before
        assert (await house.prompt("a", session_id="f")).state == "started"
        recorder = await house.subscribe(session_id="f")
        await house.equal(recorder, session_id="f")


@in_simulation
async def test_a_fork_ends_with_the_message_that_is_named(street: Street) -> None:
    """Which may be of anybody; one that is not there makes no fork."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a", "b")
        for number, message in enumerate(await house.messages(), 1):
            made = await fork(house, f"f{number}", message_id=message.message_id)
            assert made.session.message_count == number
            assert len(await house.messages(f"f{number}")) == number
        error = await refusal(fork(house, message_id="never"))
        assert (error.code, error.details) == ("not_found", {"kind": "message", "id": "never"})
        assert (await refusal(house.session("f"))).code == "not_found"


@in_simulation
async def test_a_fork_of_a_streaming_session_has_all_that_was_said_and_nothing_open(street: Street) -> None:
    """The source goes on as if nothing had happened."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin("a")
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        call = await step.tool("t", input=1)
        asking = asyncio.create_task(turn.ask_approval(call, title="?"))
        await recorder.until(lambda: len(recorder.replica.messages()[-1].parts) == 3)
        await house.prompt("waits")
        await text.append("half ")
        await house.settled()
        await text.append("a sent")
        made = await fork(house)
        assert (made.session.pending_interactions, made.session.queue) == (0, [])
        copy = (await house.messages("f"))[1]
        assert copy.state == "done"
        assert not any(is_open(part) for part in copy.parts)
        said, tool, asked = copy.parts
        assert isinstance(said, TextPart)
        assert isinstance(tool, ToolPart)
        assert isinstance(asked, InteractionPart)
        assert (said.text, tool.error, asked.cancel_reason) == (
            "half a sent",
            "forked",
            "runtime_interrupted",
        )
        await text.append("ence")
        await text.done()
        asking.cancel()
        await asyncio.wait({asking})  # which takes the question back
        original = (await house.equal(recorder))[1].parts[0]
        assert isinstance(original, TextPart)
        assert original.text == "half a sentence"


@in_simulation
async def test_a_fork_of_a_cleared_session_has_what_is_left_in_its_places(street: Street) -> None:
    """An empty one can be forked too."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        await house.clear()
        empty = (await fork(house, "empty")).session
        assert (empty.first_sequence, empty.message_count) == (3, 2)
        assert await house.messages("empty") == []
        await talk(house, "b")
        made = (await fork(house)).session
        assert (made.first_sequence, made.message_count) == (3, 4)
        assert [message.sequence for message in await house.messages("f")] == [3, 4]
        assert not (await house.page("f")).has_more
        await house.begin("c", "f")
        assert [message.sequence for message in await house.messages("f")] == [3, 4, 5]


@in_simulation
async def test_internal_messages_are_copied_as_such(street: Street) -> None:
    """They stay hidden from those who do not see them."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        await turn.internal(TextPart(text="hint"))
        await fork(house)
        assert [message.visibility for message in await house.messages("f")] == ["visible", "internal"]
        assert len((await house.page("f")).items) == 1


@in_simulation
async def test_a_key_makes_one_fork_also_when_its_source_is_gone(street: Street) -> None:
    """Twice at once, again, after the source's deletion, after a restart; other content is a conflict."""
    params = calls.ForkParams(session_id="s", key="k")
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        answers = await asyncio.gather(*(house.post("sessions.fork", params) for _ in range(2)))
        made = [answer for answer in answers if not isinstance(answer, MidstreamError)]
        refused = [answer for answer in answers if isinstance(answer, MidstreamError)]
        assert made
        assert all(error.details == {"reason": "forking"} for error in refused)
        first = decoded(calls.SessionResult, made[0])
        assert await house.call(calls.SessionResult, "sessions.fork", params) == first
        await house.call(calls.EmptyResult, "sessions.delete", calls.SessionParams(session_id="s"))
        assert await house.call(calls.SessionResult, "sessions.fork", params) == first
    async with street.house() as house:
        assert await house.call(calls.SessionResult, "sessions.fork", params) == first
        other = structs.replace(params, title="other")
        error = await refusal(house.call(calls.SessionResult, "sessions.fork", other))
        assert error.code == "idempotency_conflict"
        assert (await house.database.read(tables))["sessions"] == 2


@in_simulation
async def test_a_fork_takes_the_title_that_is_given_also_an_empty_one(street: Street) -> None:
    """And only an id that is free."""
    async with street.house() as house:
        await house.create()
        await describe(house, "t")
        assert (await fork(house, "a", title="")).session.title == ""
        assert (await fork(house, "b", title="u")).session.title == "u"
        for taken in ("a", "s"):
            assert (await refusal(fork(house, taken))).code == "already_exists"


@in_simulation
async def test_times_of_a_fork_never_go_back(street: Street) -> None:
    """The machine's clock was set back: what comes after the copies is not earlier than they are."""
    async with street.house() as house:
        await house.create()
        await talk(house, "a")
        street.clock.skew_wall(-3_600_000)
        made = await fork(house)
        copies = await house.messages("f")
        assert made.session.created_at >= max(message.updated_at for message in copies)
        await house.begin("b", "f")
        assert (await house.messages("f"))[-1].created_at >= made.session.created_at


@in_simulation
async def test_a_thousand_messages_are_copied_in_batches_between_which_others_write(street: Street) -> None:
    """All of them as they were when the fork began, whatever is written meanwhile."""
    async with street.house() as house:
        await house.create()
        names = [f"m{number}" for number in range(1_000)]
        for name in names:
            await house.prompt(name, delivery="interrupt")
        await house.create("other")
        answer = house.post("sessions.fork", calls.ForkParams(session_id="s", new_session_id="f"))
        written = 0
        while not answer.done():
            await house.prompt(f"during {written}", session_id="other", delivery="interrupt")
            await house.prompt(f"during {written}", delivery="interrupt")
            written += 1
        assert written >= 3
        total = decoded(calls.SessionResult, await answer).session.message_count
        assert 1_000 <= total <= 1_000 + written
        walked: list[Message] = []
        while not walked or walked[0].sequence > 1:
            page = await house.page("f", before=walked[0].sequence if walked else UNSET)
            walked = [*page.items, *walked]
        assert [message.sequence for message in walked] == list(range(1, total + 1))
        origins = [message.origin.message_id for message in walked if message.origin]
        assert origins[:1_000] == names


@in_simulation
async def test_large_messages_are_copied_too(street: Street) -> None:
    """A batch ends by its bytes as well, and holds at least one message."""
    async with street.house() as house:
        await house.create()
        for number in range(4):
            await house.prompt(f"m{number}", TextPart(text="x" * 700_000), delivery="interrupt")
        await fork(house)
        recorder = await house.subscribe(Recorder("f", limit=1))
        assert [message.sequence for message in recorder.replica.messages()] == [4]
        for before in (4, 3, 2):
            [message] = (await house.page("f", before=before)).items
            [part] = message.parts
            assert isinstance(part, TextPart)
            assert (message.sequence, len(part.text)) == (before - 1, 700_000)


@in_simulation
async def test_a_fork_that_fails_half_way_is_removed_and_can_be_tried_again(street: Street) -> None:
    """The disk was full for a moment."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            for number in range(300):
                await house.prompt(f"m{number}", delivery="interrupt")
            params = calls.ForkParams(session_id="s", new_session_id="f", key="k")
            answer = house.post("sessions.fork", params)
            while (await house.database.read(tables))["sessions"] == 1:
                pass
            disk.fail(Fault.DISK_FULL, times=1)
            error = await answer
            assert isinstance(error, MidstreamError)
            assert (error.code, error.retryable) == ("unavailable", True)
            await asyncio.sleep(10)
            assert (await house.database.read(tables))["sessions"] == 1
            made = await house.call(calls.SessionResult, "sessions.fork", params)
            assert made.session.message_count >= 300


@in_simulation
async def test_a_fork_that_dies_half_way_leaves_nothing(street: Street) -> None:
    """Its id and its key are free again in the next process."""
    params = calls.ForkParams(session_id="s", new_session_id="f", key="k")
    async with street.house() as house:
        await house.create()
        for number in range(300):
            await house.prompt(f"m{number}", delivery="interrupt")
        house.post("sessions.fork", params)
        while (await house.database.read(tables))["sessions"] == 1:
            pass
        assert (await refusal(house.session("f"))).code == "not_found"
        await house.crash()
    async with street.house() as house:
        await asyncio.sleep(10)
        made = await house.call(calls.SessionResult, "sessions.fork", params)
        assert made.session.message_count >= 300


@in_simulation
async def test_a_fork_does_not_hold_up_the_end_of_the_server(street: Street) -> None:
    """It may be long: it is given up between two batches, its caller told, and the next process clean."""
    params = calls.ForkParams(session_id="s", new_session_id="f", key="k")
    async with street.house() as house:
        await house.create()
        for number in range(300):
            await house.prompt(f"m{number}", delivery="interrupt")
        answer = house.post("sessions.fork", params)
        while (await house.database.read(tables))["sessions"] == 1:
            pass
        await house.registry.stop()
        error = await answer
        assert isinstance(error, MidstreamError)
        assert (error.code, error.retryable) == ("unavailable", True)
    async with street.house() as house:
        await asyncio.sleep(10)
        assert (await house.database.read(tables))["sessions"] == 1
        made = await house.call(calls.SessionResult, "sessions.fork", params)
        assert made.session.message_count >= 300


@in_simulation
async def test_a_fork_that_cannot_be_read_costs_one_call(street: Street) -> None:
    """Its source was not changed: the turn that runs there goes on, and the subscriptions with it."""
    with broken_disk() as disk:
        async with street.house(vfs=disk.name) as house:
            await house.create()
            recorder = await house.subscribe()
            turn = await house.begin()
            disk.fail(Fault.OPEN_ERROR)
            error = await refusal(fork(house))
            assert (error.code, error.retryable) == ("unavailable", True)
            disk.repair()
            assert recorder.closed == []
            assert (await house.complete(turn)).state == "completed"
            assert (await fork(house)).session.message_count == 1
