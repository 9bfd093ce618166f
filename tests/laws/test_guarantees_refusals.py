"""What is promised of refusals and of ids (SPEC 1.3: G16, G21, G22)."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.calls import (
    EmptyResult,
    ListResult,
    SessionResult,
)
from midstream.protocol.errors import AlreadyExists, MidstreamError, NotFound
from midstream.protocol.frames import Change
from midstream.protocol.values import Value
from tests.laws.cases_tools import waiting_call_of
from tests.laws.scene import Scene
from tests.laws.world import World, in_world, pause

Refusal = tuple[str, dict[str, Value], str, Value]
TEXT: Value = [{"type": "text", "text": "Hi"}]
TWICE: Value = [{"type": "text", "text": "a", "part_id": "p"}, {"type": "text", "text": "b", "part_id": "p"}]
REFUSALS: dict[str, Refusal] = {
    "no content": (
        "prompt",
        {"message_id": "m", "parts": [{"type": "text", "text": " "}]},
        "invalid",
        "parts",
    ),
    "no parts": ("prompt", {"message_id": "m", "parts": []}, "invalid", "parts"),
    "a part id twice": (
        "prompt",
        {"message_id": "m", "parts": TWICE},
        "invalid",
        "parts[1].part_id",
    ),
    "an agent's part": (
        "prompt",
        {"message_id": "m", "parts": [{"type": "step-start"}]},
        "invalid",
        "parts[0].type",
    ),
    "a running turn": ("prompt", {"message_id": "m", "parts": TEXT, "delivery": "reject"}, "refused", None),
    "other content": (
        "prompt",
        {"message_id": "input_1", "parts": TEXT},
        "idempotency_conflict",
        "message_id",
    ),
    "an answer that does not fit": (
        "respond",
        {"interaction_id": "ASKED", "response": {"kind": "question", "answers": []}},
        "invalid",
        "response.kind",
    ),
    "an unknown interaction": (
        "respond",
        {"interaction_id": "x", "response": {"kind": "approval", "decision": "denied"}},
        "not_found",
        None,
    ),
    "an unknown input": ("cancel_input", {"message_id": "x"}, "not_found", None),
    "an unknown message": ("message", {"message_id": "x"}, "not_found", None),
    "an unknown turn": ("turn", {"turn_id": "x"}, "not_found", None),
    "clear while a turn runs": ("sessions.clear", {}, "refused", None),
    "archive while a turn runs": ("sessions.archive", {}, "refused", None),
    "an unknown approval mode": (
        "sessions.approval_mode",
        {"approval_mode": "never"},
        "invalid",
        "approval_mode",
    ),
    "no approval mode": ("sessions.approval_mode", {}, "invalid", "approval_mode"),
    "a summary of what is not there": (
        "compact",
        {"through_sequence": 99, "summary": "x"},
        "invalid",
        "through_sequence",
    ),
    "a summary of what still changes": ("compact", {"through_sequence": 4, "summary": "x"}, "refused", None),
    "a summary that says nothing": ("compact", {"through_sequence": 1, "summary": " "}, "invalid", "summary"),
    "a summary that is too long": (
        "compact",
        {"through_sequence": 1, "summary": "x" * 65_537},
        "limit_exceeded",
        None,
    ),
    "a page of none": ("messages", {"limit": 0}, "invalid", "limit"),
    "a page of too many": ("messages", {"limit": 201}, "invalid", "limit"),
    "a title that is too long": ("sessions.update", {"title": "x" * 1_025}, "limit_exceeded", None),
    "a session that exists": ("sessions.create", {}, "already_exists", None),
    "a fork at an unknown message": ("sessions.fork", {"message_id": "x"}, "not_found", None),
    "an unknown method": ("sessions.search", {}, "unknown_method", None),
}


@pytest.mark.parametrize("name", REFUSALS)
@in_world()
async def test_g16_a_refused_call_changes_nothing(world: World, name: str) -> None:
    """Its error has a stable code and names the field; no frame comes, and version and digests stay."""
    scene = await Scene.begin(world)
    await waiting_call_of(scene)
    asked = (await scene.asked()).interaction_id
    reader = await scene.reader()
    before, version = reader.content(), reader.replica.version
    method, params, code, field = REFUSALS[name]
    given = {key: asked if value == "ASKED" else value for key, value in params.items()}
    answer = await scene.user.begin(method, {"session_id": "s", **given})
    await asyncio.wait([answer])
    error = answer.exception()
    assert isinstance(error, MidstreamError)
    assert error.code == code
    assert error.details.get("field") == field or field is None
    await pause()
    assert reader.line.of(Change) == []
    fresh = await scene.fresh()
    assert (fresh.content(), fresh.replica.version) == (before, version)


@in_world()
async def test_g16_a_full_queue_and_an_archived_session_refuse_a_prompt_by_name(world: World) -> None:
    """The reason is in the details, nothing is remembered, and the same prompt may be sent again later."""
    scene = await Scene.begin(world)
    turn = await scene.turn()
    for number in range(32):
        await scene.prompt(message_id=f"waits {number}", delivery="queue")
    with pytest.raises(MidstreamError) as full:
        await scene.prompt(message_id="again", delivery="queue")
    await scene.stop(turn_id=turn.turn_id, cancel_queue="all")
    await scene.ask(SessionResult, "sessions.archive")
    with pytest.raises(MidstreamError) as archived:
        await scene.prompt(message_id="again")
    reasons = [one.value.details["reason"] for one in (full, archived)]
    assert reasons == ["queue_full", "archived"]
    await scene.ask(SessionResult, "sessions.archive", archived=False)
    assert (await scene.prompt(message_id="again")).state == "started"


READS: dict[str, dict[str, Value]] = {
    "messages": {},
    "message": {"message_id": "input_1"},
    "turn": {},
    "interactions": {},
    "verify": {"from_sequence": 1, "to_sequence": 9},
    "compact": {"through_sequence": 1, "summary": "Gone"},
    "sessions.get": {},
    "sessions.update": {"title": "Gone"},
}


@in_world()
async def test_g21_a_session_that_never_was_and_one_that_is_gone_are_answered_alike(world: World) -> None:
    """Every call on either gets the same error, but for the id."""
    scene = await Scene.begin(world)
    await scene.ask(SessionResult, "sessions.create", session_id="gone")
    await scene.ask(EmptyResult, "sessions.delete", session_id="gone")
    calls: dict[str, dict[str, Value]] = {
        **READS,
        "subscribe": {},
        "prompt": {"message_id": "m", "parts": TEXT},
        "stop": {},
        "signal": {"name": "typing"},
        "sessions.delete": {},
        "sessions.fork": {},
    }
    for method, params in calls.items():
        errors: list[str] = []
        for session_id in ("gone", "never"):
            with pytest.raises(NotFound) as refused:
                await (await scene.user.begin(method, {"session_id": session_id, **params}))
            assert refused.value.details == {"kind": "session", "id": session_id}
            errors.append(refused.value.message.replace(session_id, "?"))
        assert errors[0] == errors[1]
    assert [one.session_id for one in (await scene.user.ask(ListResult, "sessions.list")).items] == ["s"]


@in_world()
async def test_g22_the_id_of_a_deleted_session_is_never_given_again(world: World) -> None:
    """Neither to a new session nor to a fork, at once, after its rows are gone, and after a crash."""
    scene = await Scene.begin(world)
    await scene.ask(SessionResult, "sessions.create", session_id="gone", title="Gone")
    await scene.ask(EmptyResult, "sessions.delete", session_id="gone")
    for after in (pause, scene.restart, scene.crash):
        with pytest.raises(AlreadyExists):
            await scene.ask(SessionResult, "sessions.create", session_id="gone")
        with pytest.raises(AlreadyExists):
            await scene.ask(SessionResult, "sessions.fork", new_session_id="gone")
        await after()
