"""The calls to one session, each as a function of its loaded state (SPEC 7, 8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import UNSET, structs

from midstream.protocol import calls
from midstream.protocol.agent_calls import AttachParams
from midstream.protocol.digest import content_hash
from midstream.protocol.errors import NotFound, Refused, Unavailable, UnknownMethod
from midstream.server.sessions import interactions, summaries, turns

if TYPE_CHECKING:
    import msgspec

    from midstream.protocol.values import Value
    from midstream.server.sessions.commands import Command
    from midstream.server.sessions.draft import Draft
    from midstream.server.sessions.state import LoadedState

Handler: TypeAlias = "Callable[[LoadedState, Command], Awaitable[msgspec.Struct]]"


def handler(method: str) -> Handler:
    """Return the function that carries out a method. Raises UnknownMethod."""
    found = _HANDLERS.get(method)
    if found is None:
        raise UnknownMethod(method)
    return found


# Reading


async def _subscribe(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.SubscribeParams", command.params)
    subscriber = command.subscriber
    if subscriber is None or state.loop.has_left(subscriber):
        raise Unavailable("This subscription ended before it began. Subscribe again.")
    await state.flush()
    payload = await state.reading.sync(
        None if params.cursor is UNSET else params.cursor,
        limit=0 if params.limit is UNSET else params.limit,
        include_internal=params.include_internal,
    )
    if state.loop.has_left(subscriber):
        raise Unavailable("This subscription ended before it began. Subscribe again.")
    state.stream.add(subscriber)
    return calls.SubscribeResult(channel=state.stream.channel, sync=payload)


async def _messages(state: LoadedState, command: Command) -> msgspec.Struct:
    await state.flush()
    return await state.reading.page(cast("calls.MessagesParams", command.params))


async def _message(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.MessageParams", command.params)
    await state.flush()
    message = await state.reading.message(
        params.message_id, include_internal="internal" in command.caller.scopes
    )
    versions = state.versions
    return calls.MessageResult(message=message, epoch=versions.epoch, version=versions.published)


async def _turn(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.TurnParams", command.params)
    await state.flush()
    turn = await state.reading.turn(params.turn_id)
    return calls.TurnResult(turn=turn, epoch=state.versions.epoch, version=state.versions.published)


async def _interactions(state: LoadedState, command: Command) -> msgspec.Struct:  # noqa: ARG001  # a handler
    await state.flush()
    items = [
        calls.PendingInteraction(
            message_id=head.message_id,
            message_sequence=head.sequence,
            turn_id=head.turn_id,
            interaction=part,
        )
        for head, part in interactions.pending(state.projection)
    ]
    versions = state.versions
    return calls.InteractionsResult(items=items, epoch=versions.epoch, version=versions.published)


async def _verify(state: LoadedState, command: Command) -> msgspec.Struct:
    await state.flush()
    return await state.reading.digests(cast("calls.VerifyParams", command.params))


async def _signal(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.SignalParams", command.params)
    state.stream.signal(command.caller.connection_id, params.name, params.data)
    return calls.EmptyResult()


async def _attach(state: LoadedState, command: Command) -> msgspec.Struct:
    if command.worker is None:
        raise Refused("not_registered", "Call agent.register on this connection first.")
    return await state.attach(command.worker, cast("AttachParams", command.params))


# Input and turns


async def _prompt(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.PromptParams", command.params)
    content = content_hash(cast("dict[str, Value]", command.as_sent)["parts"])
    known, taken = await state.reading.input(params.message_id)
    turns.check_repeated(known, content, params.message_id, taken=taken)
    if known is not None:
        return turns.prompt_result(known, state.projection.queue)
    delivery = state.input_policy.delivery(params.delivery)
    draft = await state.draft()
    accepted = turns.accept(
        draft,
        structs.replace(params, delivery=delivery),
        params.parts,
        content_hash=content,
        subject=command.caller.subject,
        order=state.versions.published + 1,
    )
    await state.commit(draft)
    return turns.prompt_result(accepted, state.projection.queue)


async def _stop(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.StopParams", command.params)
    running = state.projection.turn
    if running is None or params.turn_id not in {"current", running.turn_id}:
        return calls.StopResult(stopped=False, cancelled=[], reason="idle")
    draft = await state.draft()
    mine = {
        "own": {command.caller.subject},
        "all": {item.subject for item in draft.queue},
        "none": set[str](),
    }
    cancelled = [item for item in draft.queue if item.subject in mine[params.cancel_queue]]
    for item in cancelled:
        turns.cancel_input(draft, item)
    turns.end_turn(draft, "stopped", reason="turn_stopped")
    await state.commit(draft)
    return calls.StopResult(
        stopped=True,
        turn_id=running.turn_id,
        cancelled=[item.message_id for item in cancelled],
        reason="stopped",
    )


async def _cancel_input(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.CancelInputParams", command.params)
    draft = await state.draft()
    queued = next((item for item in draft.queue if item.message_id == params.message_id), None)
    if queued is None:
        known, _ = await state.reading.input(params.message_id)
        if known is None:
            raise NotFound("input", params.message_id)
        return turns.prompt_result(known, state.projection.queue)
    cancelled = turns.cancel_input(draft, queued)
    await state.commit(draft)
    return turns.prompt_result(cancelled, state.projection.queue)


async def _respond(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.RespondParams", command.params)
    subject = command.caller.subject
    found = state.projection.find_interaction(params.interaction_id)
    part = found[1] if found else await state.reading.closed_interaction(params.interaction_id)
    if part is None:
        raise NotFound("interaction", params.interaction_id)
    if interactions.is_repeat(part, params.response, subject):
        return calls.RespondResult(interaction=part)
    if found is None:
        raise interactions.closed(part)
    draft = await state.draft()
    answered = interactions.respond(draft, found[0].head.sequence, part, params.response, subject=subject)
    await state.commit(draft)
    return calls.RespondResult(interaction=answered)


async def _compact(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.CompactParams", command.params)
    through, text = params.through_sequence, params.summary
    summary = summaries.repeated(await state.reading.summary_through(through), text)
    if summary is None:
        draft = await state.draft()
        summary = summaries.compact(draft, through, text, subject=command.caller.subject)
        await state.commit(draft)
    versions = state.versions
    return calls.CompactResult(summary=summary, epoch=versions.epoch, version=versions.published)


# The session


async def _get(state: LoadedState, command: Command) -> msgspec.Struct:  # noqa: ARG001  # a handler
    await state.flush()
    return _session_result(state)


async def _update(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.UpdateParams", command.params)
    draft = await state.draft()
    if params.title is not UNSET:
        draft.session = structs.replace(draft.session, title=UNSET if params.title is None else params.title)
    if params.metadata is not UNSET:
        draft.session = structs.replace(draft.session, metadata=params.metadata)
    return await _commit_session(state, draft)


async def _archive(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.ArchiveParams", command.params)
    _refuse_running(state, "archive")
    draft = await state.draft()
    if (draft.session.archived_at is not UNSET) != params.archived:
        draft.session = structs.replace(draft.session, archived_at=draft.now if params.archived else UNSET)
    return await _commit_session(state, draft)


async def _approval_mode(state: LoadedState, command: Command) -> msgspec.Struct:
    params = cast("calls.ApprovalModeParams", command.params)
    draft = await state.draft()
    turns.refuse_archived(draft)
    interactions.set_approval_mode(
        draft,
        params.approval_mode,
        interactions.pending(state.projection),
        subject=command.caller.subject,
    )
    return await _commit_session(state, draft)


async def _clear(state: LoadedState, command: Command) -> msgspec.Struct:  # noqa: ARG001  # a handler
    _refuse_running(state, "clear")
    draft = await state.draft()
    draft.clear()
    result = await _commit_session(state, draft)
    state.purge()
    return result


async def _delete(state: LoadedState, command: Command) -> msgspec.Struct:  # noqa: ARG001  # a handler
    draft = await state.draft()
    turns.end_turn(draft, "stopped", reason="session_disposed", start_next=False)
    for item in list(draft.queue):
        turns.cancel_input(draft, item)
    await state.commit(draft, deletes=True)
    state.stream.close("deleted", retryable=False)
    state.purge()
    state.closed = True
    return calls.EmptyResult()


async def _commit_session(state: LoadedState, draft: Draft) -> msgspec.Struct:
    if not draft.is_empty():
        await state.commit(draft)
    return _session_result(state)


def _session_result(state: LoadedState) -> calls.SessionResult:
    versions = state.versions
    return calls.SessionResult(
        session=state.projection.session, epoch=versions.epoch, version=versions.published
    )


def _refuse_running(state: LoadedState, what: str) -> None:
    if state.projection.turn is not None:
        raise Refused(
            "turn_running", f"A turn is running. Stop it or wait for its end, then {what} the session."
        )


READING = frozenset(
    {"subscribe", "messages", "message", "turn", "interactions", "verify", "signal", "sessions.get"}
)
"""The calls that change nothing, and are answered also while the disk takes no commit."""

_HANDLERS: dict[str, Handler] = {
    "subscribe": _subscribe,
    "messages": _messages,
    "message": _message,
    "turn": _turn,
    "interactions": _interactions,
    "verify": _verify,
    "signal": _signal,
    "agent.attach": _attach,
    "prompt": _prompt,
    "stop": _stop,
    "cancel_input": _cancel_input,
    "respond": _respond,
    "compact": _compact,
    "sessions.get": _get,
    "sessions.update": _update,
    "sessions.archive": _archive,
    "sessions.approval_mode": _approval_mode,
    "sessions.clear": _clear,
    "sessions.delete": _delete,
}
