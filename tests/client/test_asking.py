"""A call is answered once, or its caller learns what is known of it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from midstream.client import (
    ConnectionLost,
    IncompatibleServer,
    InteractionClosed,
    Overloaded,
    SessionClosed,
    TimedOut,
)
from midstream.protocol.calls import (
    ApprovalModeParams,
    ArchiveParams,
    CompactParams,
    CompactResult,
    CreateParams,
    EmptyResult,
    ForkParams,
    InteractionsResult,
    ListParams,
    ListResult,
    RespondParams,
    RespondResult,
    SessionResult,
    SignalParams,
    StopParams,
    StopResult,
    UpdateParams,
)
from midstream.protocol.errors import AlreadyExists, ErrorInfo
from midstream.protocol.frames import ErrorFrame
from midstream.protocol.model import (
    ApprovalResponse,
    InteractionPart,
    InteractionRequest,
    QuestionAnswer,
    QuestionResponse,
    Summary,
)
from tests.client.conversation import Conversation
from tests.client.stage import Stage, in_simulation, on_every_network

STOPPED = StopResult(stopped=True, turn_id="t1", cancelled=[], reason="stopped")


@on_every_network
async def test_a_stop_of_a_named_turn_is_repeated_on_the_next_connection(stage: Stage) -> None:
    """Stopping a turn that is over does nothing, so the repeat is harmless."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    stopping = asyncio.ensure_future(session.stop("t1", cancel_queue="none"))
    first = (await link.asked("stop")).as_(StopParams)
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("stop")
    assert asked.as_(StopParams) == first == StopParams(session_id="s", turn_id="t1", cancel_queue="none")
    await asked.result(STOPPED)
    assert await stopping == STOPPED


@on_every_network
async def test_a_stop_of_whatever_runs_is_not_repeated(stage: Stage) -> None:
    """Later it could stop another turn; the caller learns that the outcome is unknown."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    stopping = asyncio.ensure_future(session.stop())
    await link.asked("stop")
    link.drop()
    with pytest.raises(ConnectionLost, match="may or may not") as caught:
        await stopping
    assert caught.value.details == {"method": "stop", "sent": True}
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    assert await link.is_quiet()


@on_every_network
async def test_offline_a_stop_means_the_turn_that_is_seen(stage: Stage) -> None:
    """The person sees a turn run and stops it: that turn, not the one that runs when the link is back."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(conversation.user("hi"))
    await session.until(lambda: session.turn is not None)
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE] * 2
    link.drop()
    await session.until(lambda: session.state == "offline")
    stopping = asyncio.ensure_future(session.stop())
    conversation.ends("t1")
    conversation.user("next", turn_id="t2")
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("stop")
    assert asked.as_(StopParams).turn_id == "t1"
    await asked.result(StopResult(stopped=False, cancelled=[], reason="idle"))
    assert not (await stopping).stopped


@on_every_network
async def test_without_a_connection_what_must_not_come_late_is_not_sent(stage: Stage) -> None:
    """A signal, an update, a stop of nothing known: refused at once, saying that nothing was sent."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE] * 2
    link.drop()
    await session.until(lambda: session.state == "offline")
    for call in (session.signal("typing"), session.update(title="x"), session.stop(), session.clear()):
        with pytest.raises(ConnectionLost, match="was not sent") as caught:
            await call
        assert caught.value.details["sent"] is False
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    assert await link.is_quiet()


@in_simulation
async def test_while_connecting_what_must_not_come_late_is_not_sent(stage: Stage) -> None:
    """An attempt that is under way is no connection: the stop does not wait for it to succeed."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    port = stage.peer.port
    await stage.peer.stop()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", port):
        await session.until(lambda: session.state == "connecting")
        with pytest.raises(ConnectionLost, match="was not sent"):
            await session.stop()
        await session.until(lambda: session.state == "offline")
    await stage.peer.start(port)
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    assert await link.is_quiet()


@on_every_network
async def test_an_overloaded_server_is_not_asked_again_for_what_is_not_harmless(stage: Stage) -> None:
    """Whoever asked is told, and decides."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    updating = asyncio.ensure_future(session.update(title="x"))
    await (await link.asked("sessions.update")).error(Overloaded("Too much at once."))
    with pytest.raises(Overloaded):
        await updating
    assert await link.is_quiet()


@on_every_network
async def test_an_answer_to_an_interaction_is_repeated_until_it_is_heard(stage: Stage) -> None:
    """The winner's retry gets the same result."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    approving = asyncio.ensure_future(session.approve("i1", "looks good"))
    first = (await link.asked("respond")).as_(RespondParams)
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("respond")
    response = ApprovalResponse(decision="approved", reason="looks good")
    assert (
        asked.as_(RespondParams)
        == first
        == RespondParams(session_id="s", interaction_id="i1", response=response)
    )
    interaction = InteractionPart(
        part_id="p1",
        sequence=1,
        interaction_id="i1",
        interaction_type="approval",
        status="resolved",
        request=InteractionRequest(title="?"),
        response=response,
    )
    await asked.result(RespondResult(interaction=interaction))
    assert await approving == interaction


@on_every_network
async def test_answers_have_the_form_of_their_question(stage: Stage) -> None:
    """Denying and answering questions are responses too, and a refusal has the outcome that won."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    denying = asyncio.ensure_future(session.deny("i1"))
    asked = await link.asked("respond")
    assert asked.as_(RespondParams).response == ApprovalResponse(decision="denied")
    await asked.error(
        InteractionClosed("i1", "resolved", {"kind": "approval", "decision": "approved"}, "ann")
    )
    with pytest.raises(InteractionClosed) as caught:
        await denying
    assert caught.value.details["resolved_by"] == "ann"
    answering = asyncio.ensure_future(session.answer("i2", {"q1": "yes", "q2": ["a", "b"]}))
    asked = await link.asked("respond")
    assert asked.as_(RespondParams).response == QuestionResponse(
        answers=[
            QuestionAnswer(question_id="q1", value="yes"),
            QuestionAnswer(question_id="q2", value=["a", "b"]),
        ]
    )
    await asked.error(Overloaded("later"))
    answering.cancel()


@in_simulation
async def test_reads_are_repeated_and_retried(stage: Stage) -> None:
    """A read survives an overload and a lost connection, and its caller sees neither."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    reading = asyncio.ensure_future(session.interactions())
    await (await link.asked("interactions")).error(Overloaded("later"))
    await link.asked("interactions")
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("interactions")
    await asked.result(InteractionsResult(items=[], epoch=conversation.epoch, version=conversation.version))
    assert await reading == []


@in_simulation
async def test_a_call_without_an_answer_times_out_and_a_late_answer_is_ignored(stage: Stage) -> None:
    """The error names the call; what comes afterwards belongs to nobody."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(call_timeout=3), conversation)
    reading = asyncio.ensure_future(session.interactions())
    late = await link.asked("interactions")
    with pytest.raises(TimedOut, match="interactions"):
        await reading
    await late.result(InteractionsResult(items=[], epoch=conversation.epoch, version=1))
    again = asyncio.ensure_future(session.update(title="x"))
    asked = await link.asked("sessions.update")
    assert asked.id != late.id
    await asked.result(SessionResult(session=conversation.session, epoch=conversation.epoch, version=1))
    assert await again == conversation.session


@in_simulation
async def test_a_call_that_nobody_waits_for_any_more_is_not_sent_later(stage: Stage) -> None:
    """It timed out, or was cancelled, while there was no connection."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(call_timeout=0.001), conversation)
    stage.peer.statuses = [HTTPStatus.SERVICE_UNAVAILABLE] * 4
    link.drop()
    await session.until(lambda: session.state == "offline")
    cancelled = asyncio.ensure_future(session.stop("t1"))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(TimedOut):
        await session.interactions()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    assert await link.is_quiet()


@on_every_network
async def test_the_calls_of_a_session_have_the_params_that_were_asked_for(stage: Stage) -> None:
    """Update, archive, signal and delete say what they were told, and nothing more."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    made = SessionResult(session=conversation.session, epoch=conversation.epoch, version=10)

    updating = asyncio.ensure_future(session.update(title=None, metadata={"a": 1}))
    asked = await link.asked("sessions.update")
    assert asked.as_(UpdateParams) == UpdateParams(session_id="s", title=None, metadata={"a": 1})
    await asked.result(made)
    await updating

    archiving = asyncio.ensure_future(session.archive(archived=False))
    asked = await link.asked("sessions.archive")
    assert asked.as_(ArchiveParams) == ArchiveParams(session_id="s", archived=False)
    await asked.result(made)
    await archiving

    allowing = asyncio.ensure_future(session.set_approval_mode("always-allow"))
    asked = await link.asked("sessions.approval_mode")
    assert asked.as_(ApprovalModeParams) == ApprovalModeParams(session_id="s", approval_mode="always-allow")
    await asked.result(made)
    await allowing

    compacting = asyncio.ensure_future(session.compact(4, "It was said."))
    asked = await link.asked("compact")
    assert asked.as_(CompactParams) == CompactParams(
        session_id="s", through_sequence=4, summary="It was said."
    )
    summary = Summary(from_sequence=1, through_sequence=4, text="It was said.", created_at=1)
    await asked.result(CompactResult(summary=summary, epoch=conversation.epoch, version=10))
    assert await compacting == summary

    signalling = asyncio.ensure_future(session.signal("typing", {"who": "me"}))
    asked = await link.asked("signal")
    assert asked.as_(SignalParams) == SignalParams(session_id="s", name="typing", data={"who": "me"})
    await asked.result(EmptyResult())
    await signalling

    deleting = asyncio.ensure_future(session.delete())
    await (await link.asked("sessions.delete")).result(EmptyResult())
    await deleting
    assert session.state == "closed"
    assert isinstance(session.error, SessionClosed)


@on_every_network
async def test_a_fork_is_made_once_and_opened(stage: Stage) -> None:
    """The repeat has the same key, and what comes back is another session, synced."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    forking = asyncio.ensure_future(session.fork("m3", title="copy"))
    first = (await link.asked("sessions.fork")).as_(ForkParams)
    link.drop()
    link = await stage.peer.accept()
    await stage.sync(link, conversation)
    asked = await link.asked("sessions.fork")
    assert asked.as_(ForkParams) == first
    assert (first.message_id, first.title) == ("m3", "copy")
    assert first.key
    copy = Conversation("copy", channel=9)
    copy.user("hi")
    await asked.result(SessionResult(session=copy.session, epoch=copy.epoch, version=copy.version))
    await stage.sync(link, copy)
    fork = await forking
    assert (fork.session_id, fork.messages) == ("copy", copy.messages)


@on_every_network
async def test_a_fork_is_seen_as_its_source_is(stage: Stage) -> None:
    """Who sees internal messages there sees their copies here."""
    session, link = await stage.opened(stage.client(), Conversation(), include_internal=True)
    forking = asyncio.ensure_future(session.fork())
    asked = await link.asked("sessions.fork")
    copy = Conversation("copy", channel=9)
    await asked.result(SessionResult(session=copy.session, epoch=copy.epoch, version=copy.version))
    assert (await stage.sync(link, copy)).include_internal
    assert (await forking).include_internal


@on_every_network
async def test_sessions_are_listed_page_by_page(stage: Stage) -> None:
    """More than a page holds is read with what the page before said."""
    client = stage.client()
    listing = asyncio.ensure_future(client.sessions(limit=250, archived=True))
    link = await stage.peer.accept()
    info = Conversation().session
    asked = await link.asked("sessions.list")
    assert asked.as_(ListParams) == ListParams(limit=200, archived=True)
    await asked.result(ListResult(items=[info] * 200, next_after="x"))
    asked = await link.asked("sessions.list")
    assert asked.as_(ListParams) == ListParams(limit=50, after="x", archived=True)
    await asked.result(ListResult(items=[info]))
    assert len(await listing) == 201


@on_every_network
async def test_creating_without_opening(stage: Stage) -> None:
    """It returns the new session's state, or the server's refusal."""
    client = stage.client()
    creating = asyncio.ensure_future(client.create(title="t", metadata={"a": 1}, key="k"))
    link = await stage.peer.accept()
    asked = await link.asked("sessions.create")
    assert asked.as_(CreateParams) == CreateParams(key="k", title="t", metadata={"a": 1})
    info = Conversation().session
    await asked.result(SessionResult(session=info, epoch="e", version=1))
    assert await creating == info
    creating = asyncio.ensure_future(client.create("s"))
    await (await link.asked("sessions.create")).error(AlreadyExists("s"))
    with pytest.raises(AlreadyExists):
        await creating


@on_every_network
async def test_a_result_of_the_wrong_form_is_an_error_of_that_call_only(stage: Stage) -> None:
    """The caller learns that the server is at fault, and the connection goes on."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    reading = asyncio.ensure_future(session.interactions())
    asked = await link.asked("interactions")
    await asked.result(EmptyResult())
    with pytest.raises(IncompatibleServer, match="interactions"):
        await reading
    await link.send(conversation.titled("still here"))
    await session.until(lambda: session.info.title == "still here")


@on_every_network
async def test_an_error_that_belongs_to_no_call_ends_nothing(stage: Stage) -> None:
    """It is logged, and the connection goes on."""
    conversation = Conversation()
    session, link = await stage.opened(stage.client(), conversation)
    await link.send(ErrorFrame(None, ErrorInfo(code="unknown_frame", message="what?", retryable=False)))
    await link.send(conversation.titled("still here"))
    await session.until(lambda: session.info.title == "still here")
