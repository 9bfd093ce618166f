"""A prompt reaches the server once and in order, and its handle learns what became of it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from midstream.client import (
    IdempotencyConflict,
    InputCancelled,
    InvalidRequest,
    OutboxFull,
    Refused,
    SessionClosed,
    TimedOut,
)
from midstream.protocol.calls import (
    CancelInputParams,
    PromptParams,
    PromptResult,
    StopParams,
    StopResult,
    TurnParams,
    TurnResult,
)
from midstream.protocol.errors import NotFound, Overloaded
from midstream.protocol.frames import Closed
from midstream.protocol.model import DataPart, TextPart
from tests.client.conversation import Conversation
from tests.client.peer import PeerLink
from tests.client.stage import Stage, in_simulation, on_every_network


async def prompted(link: PeerLink, message_id: str | None = None) -> PromptParams:
    """Read the next prompt, and accept it into the queue."""
    asked = await link.asked("prompt")
    params = asked.as_(PromptParams)
    assert message_id in {None, params.message_id}
    await asked.result(PromptResult(state="queued", message_id=params.message_id, position=1))
    return params


@on_every_network
async def test_a_prompt_is_followed_from_its_acceptance_to_the_end_of_its_turn(stage: Stage) -> None:
    """The handle is there at once; the answer and the replica move it on."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="m1")
    assert handle.state == "pending"
    asked = await link.asked("prompt")
    assert asked.as_(PromptParams) == PromptParams(
        session_id="s", message_id="m1", parts=[TextPart(text="hi")], delivery="auto"
    )
    await link.send(conversation.user("hi", message_id="m1"))
    await asked.result(PromptResult(state="started", message_id="m1", turn_id="t1"))
    result = await handle.accepted()
    assert (result.state, handle.turn_id, handle.state) == ("started", "t1", "running")
    await link.send(conversation.agent())
    await link.send(conversation.ends())
    turn = await handle.finished()
    assert (turn, handle.state) == (conversation.turns["t1"], "completed")


@on_every_network
async def test_prompts_made_offline_are_sent_once_and_in_order(stage: Stage) -> None:
    """While nobody answers they are kept; then each goes out when the one before is accepted."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE] * 3
    link.drop()
    await session.until(lambda: session.state == "offline")
    handles = [await session.prompt(str(number), message_id=f"m{number}") for number in range(5)]
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    order: list[str] = []
    for _ in range(5):
        asked = await link.asked("prompt")
        assert await link.is_quiet()
        message_id = asked.as_(PromptParams).message_id
        order.append(message_id)
        await link.send(conversation.queue(*order))
        await asked.result(PromptResult(state="queued", message_id=message_id, position=len(order)))
    await handles[-1].accepted()
    assert order == [f"m{number}" for number in range(5)]
    assert [handle.state for handle in handles] == ["queued"] * 5
    await session.until(lambda: session.version == conversation.version)
    assert [handle.position for handle in handles] == [1, 2, 3, 4, 5]
    assert await link.is_quiet()


@on_every_network
async def test_a_lost_answer_to_a_prompt_sends_it_again_under_the_same_id(stage: Stage) -> None:
    """The server has it perhaps, so the repeat must be the same in everything."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi")
    first = (await link.asked("prompt")).as_(PromptParams)
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("prompt")
    assert asked.as_(PromptParams) == first
    await link.send(conversation.user("hi", message_id=first.message_id))
    await asked.result(PromptResult(state="started", message_id=first.message_id, turn_id="t1"))
    assert (await handle.accepted()).turn_id == "t1"
    assert await link.is_quiet()


@in_simulation
async def test_an_overloaded_server_gets_the_prompt_again_later_and_no_other_before_it(stage: Stage) -> None:
    """What the server puts off keeps its place and its id, and comes after a pause."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    start = asyncio.get_running_loop().time()
    handles = [await session.prompt(name, message_id=name) for name in ("first", "second")]
    for _ in range(4):
        asked = await link.asked("prompt")
        assert asked.as_(PromptParams).message_id == "first"
        await asked.error(Overloaded("Too much at once."))
    await link.send(conversation.queue("first"))
    await prompted(link, "first")
    await link.send(conversation.queue("first", "second"))
    await prompted(link, "second")
    await handles[1].accepted()
    assert asyncio.get_running_loop().time() > start


@on_every_network
async def test_a_refused_prompt_says_why_and_lets_the_next_one_go(stage: Stage) -> None:
    """The handle has the error; whoever waits for it gets it."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    refused = await session.prompt("hi", delivery="reject")
    following = await session.prompt("again", message_id="m2")
    await (await link.asked("prompt")).error(Refused("turn_running", "A turn runs already."))
    await prompted(link, "m2")
    await following.accepted()
    assert refused.state == "refused"
    for waiting in (refused.accepted(), refused.started(), refused.finished()):
        with pytest.raises(Refused, match="runs already"):
            await waiting


@on_every_network
async def test_a_prompt_that_was_refused_can_be_given_again(stage: Stage) -> None:
    """Only accepted input is remembered, here as at the server: the same id is then a new try."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    refused = await session.prompt("hi", message_id="m1", delivery="reject")
    await (await link.asked("prompt")).error(Refused("turn_running", "A turn runs already."))
    with pytest.raises(Refused):
        await refused.accepted()
    again = await session.prompt("hi", message_id="m1")
    await link.send(conversation.queue("m1"))
    await prompted(link, "m1")
    assert (await again.accepted()).state == "queued"


@on_every_network
async def test_a_turn_that_ends_while_the_client_is_away_is_learned_from_the_catchup(stage: Stage) -> None:
    """The handle stays pending over the disconnect, and the sync has the end."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="m1")
    asked = await link.asked("prompt")
    await link.send(conversation.user("hi", message_id="m1"))
    await asked.result(PromptResult(state="started", message_id="m1", turn_id="t1"))
    await handle.accepted()
    link.drop()
    conversation.agent()
    conversation.ends(state="failed")
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    assert (await handle.finished()).state == "failed"
    assert await link.is_quiet()


@on_every_network
async def test_after_a_reset_the_turn_of_a_pending_handle_is_asked_for(stage: Stage) -> None:
    """A reset need not hold the turn; the handle learns its end all the same."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="m1")
    asked = await link.asked("prompt")
    await link.send(conversation.user("hi", message_id="m1"))
    await asked.result(PromptResult(state="started", message_id="m1", turn_id="t1"))
    await handle.accepted()
    link.drop()
    conversation.ends(state="stopped")
    conversation.epoch = "00000000000000cc"
    link = await stage.peer.accept()
    asked = await link.asked("subscribe")
    await asked.result(conversation.subscribed(conversation.reset()))
    asked = await link.asked("turn")
    assert asked.as_(TurnParams) == TurnParams(session_id="s", turn_id="t1")
    await asked.result(
        TurnResult(turn=conversation.turns["t1"], epoch=conversation.epoch, version=conversation.version)
    )
    assert (await handle.finished()).state == "stopped"
    assert handle.state == "stopped"


@on_every_network
async def test_a_queued_prompt_learns_its_turn_when_its_message_appears(stage: Stage) -> None:
    """The user message with the prompt's id names the turn: nothing has to be asked."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="m1")
    asked = await link.asked("prompt")
    await link.send(conversation.queue("other", "m1"))
    await asked.result(PromptResult(state="queued", message_id="m1", position=2))
    await handle.accepted()
    assert (handle.state, handle.position) == ("queued", 2)
    await link.send(conversation.queue("m1"))
    await session.until(lambda: handle.position == 1)
    await link.send(conversation.user("hi", message_id="m1", turn_id="t9"))
    assert await handle.started() == "t9"
    await link.send(conversation.ends("t9"))
    assert (await handle.finished()).turn_id == "t9"
    assert await link.is_quiet()


@on_every_network
async def test_a_queued_prompt_that_vanished_is_asked_for_and_found_cancelled(stage: Stage) -> None:
    """It left the queue and no message has it: the same prompt again tells its present state."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="m1")
    asked = await link.asked("prompt")
    first = asked.as_(PromptParams)
    await link.send(conversation.queue("m1"))
    await asked.result(PromptResult(state="queued", message_id="m1", position=1))
    await handle.accepted()
    await link.send(conversation.queue())
    asked = await link.asked("prompt")
    assert asked.as_(PromptParams) == first
    await asked.result(PromptResult(state="cancelled", message_id="m1"))
    with pytest.raises(InputCancelled):
        await handle.finished()
    assert handle.state == "cancelled"
    assert (await handle.accepted()).state == "cancelled"


@on_every_network
async def test_a_prompt_that_was_absorbed_ends_with_the_turn_that_took_it(stage: Stage) -> None:
    """Steering input has the turn it steers."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.user("hi"))
    handle = await session.prompt("faster", message_id="m2")
    asked = await link.asked("prompt")
    await asked.result(PromptResult(state="absorbed", message_id="m2", turn_id="t1"))
    assert await handle.started() == "t1"
    await link.send(conversation.ends())
    assert (await handle.finished()).turn_id == "t1"


@on_every_network
async def test_a_prompt_from_long_ago_learns_its_turn_by_asking(stage: Stage) -> None:
    """The same id again after a restart of the application: the turn is over and no longer in the replica."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("hi", message_id="old")
    asked = await link.asked("prompt")
    await asked.result(PromptResult(state="started", message_id="old", turn_id="gone"))
    asked = await link.asked("turn")
    await asked.error(NotFound("turn", "gone"))
    with pytest.raises(NotFound, match="gone"):
        await handle.finished()


@on_every_network
async def test_the_outbox_is_bounded(stage: Stage) -> None:
    """The prompt above the limit is refused here, and those before it stay."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(outbox_limit=2), conversation)
    for name in ("a", "b"):
        await session.prompt(name, message_id=name)
    with pytest.raises(OutboxFull):
        await session.prompt("c")
    await prompted(link, "a")
    await prompted(link, "b")


@on_every_network
async def test_a_prompt_that_no_wire_can_carry_is_refused_at_once(stage: Stage) -> None:
    """The field is named, and nothing is sent."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    with pytest.raises(InvalidRequest, match=r"parts\[0\]\.text"):
        await session.prompt("\ud800")
    with pytest.raises(InvalidRequest, match=r"parts\[0\]\.data"):
        await session.prompt([DataPart(data_type="x", data=float("nan"))])
    assert await link.is_quiet()


@on_every_network
async def test_a_prompt_that_passes_the_servers_limit_is_refused_without_being_sent(stage: Stage) -> None:
    """The limit of `welcome` is held here, by name, and the next prompt goes out."""
    stage.peer.limits = type(stage.peer.limits)(frame_bytes=1_000)
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handle = await session.prompt("x" * 2_000)
    with pytest.raises(Exception, match="frame_bytes"):
        await handle.accepted()
    await session.prompt("y", message_id="y")
    await prompted(link, "y")


@on_every_network
async def test_the_same_prompt_twice_is_one_prompt(stage: Stage) -> None:
    """A double click is one message; other content under the same id is an error."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await session.prompt("hi", message_id="m1")
    await session.prompt("hi", message_id="m1")
    with pytest.raises(IdempotencyConflict):
        await session.prompt("other", message_id="m1")
    await link.send(conversation.queue("m1"))
    await prompted(link, "m1")
    assert await link.is_quiet()


@on_every_network
async def test_a_prompt_that_was_not_sent_is_taken_back_without_the_server(stage: Stage) -> None:
    """The one on its way is the server's to cancel; the one behind it never leaves."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    sent = await session.prompt("a", message_id="a")
    kept = await session.prompt("b", message_id="b")
    await kept.stop()
    assert kept.state == "cancelled"
    stopping = asyncio.ensure_future(sent.stop())
    await link.send(conversation.queue("a"))
    await prompted(link, "a")
    asked = await link.asked("cancel_input")
    assert asked.as_(CancelInputParams).message_id == "a"
    await link.send(conversation.user("a", message_id="a"))
    await asked.result(PromptResult(state="started", message_id="a", turn_id="t1"))
    asked = await link.asked("stop")
    assert asked.as_(StopParams).turn_id == "t1"
    await asked.result(StopResult(stopped=True, turn_id="t1", cancelled=[], reason="stopped"))
    await stopping


@on_every_network
async def test_handles_of_a_session_that_closes_get_its_error(stage: Stage) -> None:
    """Whoever waits learns that there is nothing to wait for, sent or not."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    handles = [await session.prompt("a"), await session.prompt("b")]
    waiting = [asyncio.ensure_future(handle.finished()) for handle in handles]
    await link.asked("prompt")
    await link.send(Closed(conversation.channel, "deleted", False))  # noqa: FBT003 - a frame's elements have no names
    for task in waiting:
        with pytest.raises(SessionClosed, match="deleted"):
            await task


@in_simulation
async def test_waiting_for_a_handle_can_end_without_ending_the_prompt(stage: Stage) -> None:
    """A timeout says what is in the way, and the prompt still goes out later."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE] * 4
    link.drop()
    await session.until(lambda: session.state == "offline")
    handle = await session.prompt("hi", message_id="m1")
    with pytest.raises(TimedOut, match=r"acceptance.*connection"):
        await handle.accepted(timeout=0.001)
    assert handle.state == "pending"
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    await link.send(conversation.queue("m1"))
    await prompted(link, "m1")
    assert (await handle.accepted()).state == "queued"
