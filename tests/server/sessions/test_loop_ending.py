"""How a session ends: deleted, stopped with its server, or killed; and how it comes back."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET, structs

from midstream.protocol import calls
from midstream.protocol.errors import MidstreamError
from tests.server.sessions.house import Street, decoded, in_simulation, parts_of, refusal
from tests.server.sessions.recorder import Closed
from tests.server.storage.books import tables

# Deletion


@in_simulation
async def test_deletion_in_the_middle_of_a_turn_ends_it_before_all_eyes(street: Street) -> None:
    """The turn is stopped, subscriptions are closed for good, and the id is never given again."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        asking = asyncio.create_task(turn.ask_approval(title="?"))
        await recorder.until(
            lambda: recorder.replica.session and recorder.replica.session.pending_interactions
        )
        await house.prompt("waits")
        params = calls.SessionParams(session_id="s")
        answers = [house.post("sessions.delete", params) for _ in range(2)]
        assert decoded(calls.EmptyResult, await answers[0]) == calls.EmptyResult()
        with pytest.raises(asyncio.CancelledError):
            await asking
        again = await answers[1]
        assert isinstance(again, MidstreamError)
        assert again.code in {"unavailable", "not_found"}
        assert recorder.closed == [Closed("deleted", retryable=False)]
        session = recorder.replica.session
        assert session is not None
        assert (session.running_turn_id, session.queue, session.pending_interactions) == (UNSET, [], 0)
        [asked] = parts_of(recorder.replica.messages()[1])
        assert (asked["status"], asked["cancel_reason"]) == ("cancelled", "session_disposed")
        assert (await refusal(house.session())).code == "not_found"
        assert (await refusal(house.create())).code == "already_exists"
        await asyncio.sleep(1)
        assert (await house.database.read(tables))["parts"] == 0


# The end of the process


@in_simulation
async def test_a_server_that_stops_ends_the_turn_as_interrupted_and_the_next_goes_on(street: Street) -> None:
    """Readers see the end; what waited starts by itself when the server is back."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("half a sent")
        await house.prompt("waits")
        version, epoch = recorder.replica.version, recorder.replica.epoch
        await house.registry.stop()
        ended = recorder.replica.turns[turn.turn_id]
        assert (ended.state, ended.error and ended.error.code) == ("failed", "runtime_interrupted")
        assert recorder.replica.version > version
        version = recorder.replica.version
        with pytest.raises(MidstreamError) as refused:
            house.post("sessions.get", calls.SessionParams(session_id="s"))
        assert refused.value.code == "unavailable"
    async with street.house() as house:
        after = await house.puppet.next()
        assert after.prompt_text == "text of waits"
        recorder = await house.resume(recorder)
        assert recorder.replica.version > version
        assert recorder.replica.epoch != epoch
        await house.equal(recorder)


@in_simulation
async def test_a_crash_in_the_middle_of_a_sentence_leaves_every_reader_equal(street: Street) -> None:
    """What was only streamed is lost, and leaves every replica; versions go on above all that there were."""
    async with street.house() as house:
        await house.create()
        recorder = await house.subscribe()
        turn = await house.begin()
        async with turn.step() as step, step.text() as text:
            await text.append("stored. ")
        step = turn.step()
        await step.__aenter__()
        streaming = step.text()
        await streaming.__aenter__()
        await streaming.append("only streamed")
        await house.prompt("waits")
        shown = [part for message in recorder.replica.messages() for part in parts_of(message)]
        assert shown[-1]["text"] == "only streamed"
        seen = recorder.replica.version
        await house.crash()
    async with street.house() as house:
        turn = await house.puppet.next()
        recorder = await house.resume(recorder)
        messages = await house.equal(recorder)
        assert recorder.replica.version > seen
        assert messages[2].message_id == "waits"
        texts = [(part["type"], part.get("text")) for part in parts_of(messages[1])]
        assert texts[0] == ("text", "stored. ")
        assert texts[-1] == ("error", None)
        assert structs.replace(messages[1], parts=[]).state == "done"
