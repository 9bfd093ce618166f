"""The loop of one session: one mailbox, one order, and answers that stand where they belong."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError, Overloaded, Unavailable
from midstream.protocol.frames import Sync, SyncPayload
from midstream.protocol.model import ApprovalResponse
from midstream.server.sessions.commands import Caller, Command
from midstream.server.sessions.services import Settings
from midstream.server.storage import store
from tests.server.sessions.house import House, Street, decoded, in_simulation, parts_of, refusal
from tests.server.sessions.recorder import Recorder
from tests.server.storage.books import tables

if TYPE_CHECKING:
    from midstream.server.sessions.commands import Answer
    from midstream.server.storage.records import LoadedSession

IDLE = 60.0
"""Seconds after which an unused session is let go."""


async def stored(house: House, session_id: str = "s") -> LoadedSession:
    """The session as the next load would find it."""
    loaded = await house.database.read(partial(store.load_session, session_id=session_id))
    assert loaded is not None
    return loaded


@in_simulation
async def test_a_prompt_runs_a_turn_that_every_subscriber_sees(street: Street) -> None:
    """From the user's message to the end, without a hole, and equal to what a page shows."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("Hello")
            await text.append(" you")
        house.puppet.finish(turn)
        await recorder.until(lambda: recorder.replica.running_turn is None)
        user, agent = await house.equal(recorder)
        assert parts_of(user) == [{"type": "text", "text": "text of m"}]
        assert parts_of(agent) == [{"type": "text", "text": "Hello you", "state": "done"}]


@in_simulation
async def test_calls_take_effect_in_the_order_they_were_posted(street: Street) -> None:
    """And are answered in it, whoever sent them."""
    async with street.house() as house:
        await house.create()
        order: list[int] = []
        answers = [
            house.post(
                "sessions.update",
                calls.UpdateParams(session_id="s", title=str(number)),
                subject=f"caller {number % 3}",
                replied=lambda _, number=number: order.append(number),  # type: ignore[misc]  # a default
            )
            for number in range(20)
        ]
        titles = [decoded(calls.SessionResult, await answer).session.title for answer in answers]
        assert titles == [str(number) for number in range(20)]
        assert order == list(range(20))


@in_simulation
async def test_an_unknown_session_is_not_found_by_any_call(street: Street) -> None:
    """Nor one that was deleted; nothing is made by asking."""
    name = "nowhere"
    every: list[tuple[str, calls._Params]] = [  # pyright: ignore[reportPrivateUsage]  # any of the calls
        ("messages", calls.MessagesParams(session_id=name)),
        ("message", calls.MessageParams(session_id=name, message_id="m")),
        ("turn", calls.TurnParams(session_id=name)),
        ("prompt", calls.PromptParams(session_id=name, message_id="m", parts=[])),
        ("stop", calls.StopParams(session_id=name)),
        (
            "respond",
            calls.RespondParams(
                session_id=name, interaction_id="i", response=ApprovalResponse(decision="denied")
            ),
        ),
        ("interactions", calls.InteractionsParams(session_id=name)),
        ("cancel_input", calls.CancelInputParams(session_id=name, message_id="m")),
        ("verify", calls.VerifyParams(session_id=name, from_sequence=1, to_sequence=1)),
        ("signal", calls.SignalParams(session_id=name, name="n")),
        ("sessions.get", calls.SessionParams(session_id=name)),
        ("sessions.update", calls.UpdateParams(session_id=name)),
        ("sessions.clear", calls.SessionParams(session_id=name)),
        ("sessions.archive", calls.ArchiveParams(session_id=name)),
        ("sessions.delete", calls.SessionParams(session_id=name)),
        ("sessions.fork", calls.ForkParams(session_id=name)),
    ]
    async with street.house() as house:
        for method, params in every:
            error = await refusal(house.call(calls.EmptyResult, method, params))
            assert (error.code, error.details) == ("not_found", {"kind": "session", "id": name}), method
        error = await refusal(house.subscribe(session_id=name))
        assert error.code == "not_found"
        assert (await house.database.read(tables))["sessions"] == 0


@in_simulation
async def test_a_full_mailbox_refuses_and_takes_again_once_there_is_room(street: Street) -> None:
    """The refusal may be sent again; what was taken is answered."""
    async with street.house(settings=Settings(mailbox=3)) as house:
        await house.create()
        await house.settled()
        params = calls.SessionParams(session_id="s")
        answers = [house.post("sessions.get", params) for _ in range(3)]
        with pytest.raises(Overloaded) as refused:
            house.post("sessions.get", params)
        assert refused.value.retryable
        for answer in answers:
            assert decoded(calls.SessionResult, await answer).session.session_id == "s"
        await house.settled()


@in_simulation
async def test_a_call_that_breaks_is_answered_and_the_session_goes_on(street: Street) -> None:
    """A fault of ours costs one call."""
    async with street.house() as house:
        await house.create()
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        house.registry.post(
            "s",
            Command(
                method="prompt",
                params=calls.PromptParams(session_id="s", message_id="m", parts=[]),
                as_sent={"no": "parts"},
                caller=Caller(subject="ann", connection_id="c"),
                reply=answer.set_result,
            ),
        )
        error = await answer
        assert isinstance(error, MidstreamError)
        assert error.code == "internal"
        await house.settled()


@in_simulation
async def test_a_method_that_is_no_sessions_call_is_unknown(street: Street) -> None:
    """Whoever lets it through."""
    async with street.house() as house:
        await house.create()
        error = await refusal(
            house.call(calls.EmptyResult, "sessions.search", calls.SessionParams(session_id="s"))
        )
        assert error.code == "unknown_method"


# Loading and letting go


@in_simulation
async def test_an_idle_session_is_let_go_and_goes_on_where_it_stood(street: Street) -> None:
    """Within a run: the same epoch, the next version, and a cursor that still holds."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        house.puppet.finish(turn)
        await recorder.until(lambda: recorder.replica.running_turn is None)
        house.registry.leave("s", recorder)
        version, epoch = recorder.replica.version, recorder.replica.epoch
        await asyncio.sleep(IDLE + 1)
        assert house.registry.loaded == 0
        loaded = await stored(house)
        assert (loaded.ledger.version, loaded.ledger.dirty) == (version, False)
        recorder = await house.resume(recorder)
        await house.prompt("next")
        assert recorder.replica.epoch == epoch
        assert recorder.versions[-1] == version + 1
        await house.equal(recorder)


@in_simulation
async def test_a_session_that_somebody_needs_stays_loaded(street: Street) -> None:
    """A subscriber, a turn that runs; afterwards it is let go."""
    async with street.house() as house:
        await house.create()
        recorder, other = await house.subscribe(), await house.subscribe()
        await asyncio.sleep(3 * IDLE)
        house.registry.leave("s", other)
        await asyncio.sleep(3 * IDLE)
        assert house.registry.loaded == 1
        turn = await house.begin()
        house.registry.leave("s", recorder)
        await asyncio.sleep(3 * IDLE)
        assert house.registry.loaded == 1
        house.puppet.finish(turn)
        await asyncio.sleep(3 * IDLE)
        assert house.registry.loaded == 0


@in_simulation
async def test_a_load_that_publishes_nothing_writes_nothing(street: Street) -> None:
    """In the next process as well: reading a conversation does not change its file."""
    async with street.house() as house:
        await house.create()
        house.puppet.finish(await house.begin())
        await asyncio.sleep(IDLE + 1)
    async with street.house() as house:
        before = await stored(house)
        recorder = await house.subscribe()
        await house.equal(recorder)
        house.registry.leave("s", recorder)
        await asyncio.sleep(IDLE + 1)
        assert house.registry.loaded == 0
        assert (await stored(house)).ledger == before.ledger


@in_simulation
async def test_a_call_that_comes_while_a_session_is_let_go_is_carried_out(street: Street) -> None:
    """By this loop, or by the next."""
    async with street.house() as house:
        await house.create()
        house.puppet.finish(await house.begin())
        for number in range(20):
            await asyncio.sleep(IDLE - 0.01 + number * 0.001)
            result = await house.prompt(f"m{number}")
            assert result.state == "started"
            house.puppet.finish(await house.puppet.next())
        assert len(await house.messages()) == 21


# Subscribers


@in_simulation
async def test_an_answer_to_a_reader_that_is_behind_comes_after_its_sync_at_one_version(
    street: Street,
) -> None:
    """Also while text streams: a page that showed another version would never be merged."""
    async with street.house(settings=Settings(tick_seconds=0.01)) as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("a")
            for _ in range(30):
                recorder.behind = True
                await text.append("b")
                seen: list[int] = []
                answer = house.post(
                    "messages",
                    calls.MessagesParams(session_id="s"),
                    subscriber=recorder,
                    replied=lambda _, seen=seen: seen.append(recorder.replica.version),  # type: ignore[misc]  # a lambda with a default
                )
                for _ in range(5):
                    await text.append("c")
                    await asyncio.sleep(0)
                page = decoded(calls.Page, await answer)
                assert seen == [page.version]
                assert isinstance(recorder.frames[-1], Sync)
        house.puppet.finish(turn)
        await recorder.until(lambda: recorder.replica.running_turn is None)
        await house.equal(recorder)


@in_simulation
async def test_a_reader_that_is_behind_gets_one_sync_when_it_asks(street: Street) -> None:
    """All that it missed; and nothing where it missed nothing."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        recorder.behind = True
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("Hello")
        house.puppet.finish(turn)
        await house.settled()
        seen = len(recorder.frames)
        house.registry.resync("s", recorder)
        await house.equal(recorder)
        assert len(recorder.frames) == seen + 1
        recorder.behind = True
        house.registry.resync("s", recorder)
        await house.settled()
        assert len(recorder.frames) == seen + 1
        assert recorder.behind


@in_simulation
async def test_whoever_leaves_gets_nothing_more(street: Street) -> None:
    """Before its subscribe was looked at, after it, twice, and of a session that is not loaded."""
    async with street.house() as house:
        await house.create()
        early, late = Recorder(), await house.subscribe()
        answer = house.post("subscribe", calls.SubscribeParams(session_id="s"), subscriber=early)
        for recorder in (early, late, early, late):
            house.registry.leave("s", recorder)
        house.registry.leave("elsewhere", late)
        refused = await answer
        assert isinstance(refused, MidstreamError)
        assert (refused.code, refused.retryable) == ("unavailable", True)
        await house.prompt()
        assert (early.frames, len(late.frames)) == ([], 1)


@in_simulation
async def test_whoever_leaves_while_its_subscribe_is_carried_out_gets_nothing_more(street: Street) -> None:
    """At whatever moment: it is told so, or it has been subscribed and is forgotten."""
    async with street.house() as house:
        await house.create()
        await house.prompt("a")
        for moment in range(8):
            recorder = Recorder()
            params = calls.SubscribeParams(session_id="s", limit=50)
            answer = house.post("subscribe", params, subscriber=recorder)
            for _ in range(moment):
                await asyncio.sleep(0)
            house.registry.leave("s", recorder)
            given = await answer
            assert isinstance(given, calls.SubscribeResult | Unavailable)
            await house.prompt(f"b{moment}", delivery="interrupt")
            assert recorder.frames == []


class Narrow(Recorder):
    """A subscription of a connection whose outbox takes a sync only where there is room."""

    room = False

    def bring_up(self, payload: SyncPayload) -> None:
        """Take it, or stay behind."""
        if self.room:
            super().bring_up(payload)


@in_simulation
async def test_a_call_whose_answer_finds_no_room_is_refused_and_can_be_sent_again(street: Street) -> None:
    """An answer must not come before the sync of what it shows."""
    async with street.house() as house:
        await house.create()
        recorder = Narrow()
        await house.subscribe(recorder)
        recorder.behind = True
        await house.prompt("a")
        params = calls.MessagesParams(session_id="s")
        error = await refusal(house.call(calls.Page, "messages", params, subscriber=recorder))
        assert (error.code, error.retryable) == ("overloaded", True)
        recorder.room = True
        page = await house.call(calls.Page, "messages", params, subscriber=recorder)
        assert (page.total, page.version) == (1, recorder.replica.version)


@in_simulation
async def test_a_second_subscription_replaces_the_first_without_a_second_text(street: Street) -> None:
    """As a connection does it: the first leaves when the second is posted, in the middle of a turn."""
    async with street.house() as house:
        await house.create()
        first = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("one ")
            second = Recorder()
            joined = asyncio.create_task(house.subscribe(second))
            await asyncio.sleep(0)
            house.registry.leave("s", first)
            seen = len(first.frames)
            await text.append("two ")
            await joined
            await text.append("three")
        house.puppet.finish(turn)
        await second.until(lambda: second.replica.running_turn is None)
        assert parts_of((await house.equal(second))[1])[0]["text"] == "one two three"
        assert len(first.frames) == seen


@in_simulation
async def test_a_signal_reaches_those_who_are_there_and_nothing_else(street: Street) -> None:
    """With the sender's connection; no version is taken, nothing is stored."""
    async with street.house() as house:
        await house.create()
        recorders = [await house.subscribe(), await house.subscribe()]
        before = await house.session()
        params = calls.SignalParams(session_id="s", name="typing", data={"who": "ann"})
        await house.call(calls.EmptyResult, "signal", params)
        for recorder in recorders:
            assert recorder.signals == [("connection of ann", "typing", {"who": "ann"})]
        assert await house.session() == before
