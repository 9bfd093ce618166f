"""What a host's policy makes of inputs that come while a turn runs (SPEC 8.1)."""

from __future__ import annotations

import pytest

from midstream.protocol.errors import Refused
from midstream.server.inputs import AutoDelivery, InputPolicy
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import Street, in_simulation, refusal


def under(auto: AutoDelivery = "absorb", *allowed: str) -> Settings:
    """The settings of a server with a policy."""
    policy = InputPolicy(auto=auto)
    if allowed:
        policy = InputPolicy(auto=auto, allowed=allowed)  # type: ignore[arg-type]  # each is a delivery
    return Settings(inputs=policy)


@in_simulation
async def test_input_waits_and_is_absorbed_where_the_host_says_nothing(street: Street) -> None:
    """What was sent to be queued is not."""
    async with street.house() as house:
        await house.create()
        turn = await house.begin("a")
        await house.prompt("steers")
        await house.prompt("waits", delivery="queue")
        assert [message.message_id for message in await turn.take_inputs()] == ["steers"]
        assert (await house.session()).session.queue == ["waits"]


@in_simulation
async def test_input_is_never_absorbed_where_auto_means_queue(street: Street) -> None:
    """It starts a turn of its own, also after a restart under another policy: it was accepted as that."""
    async with street.house(settings=under("queue")) as house:
        await house.create()
        turn = await house.begin("a")
        await house.prompt("b")
        await house.prompt("c")
        assert await turn.take_inputs() == []
    async with street.house(settings=under("absorb")) as house:
        following = await house.puppet.next()
        assert following.prompt.message_id == "b"
        assert await following.take_inputs() == []
        assert (await house.session()).session.queue == ["c"]


@in_simulation
async def test_input_is_refused_while_a_turn_runs_where_auto_means_reject(street: Street) -> None:
    """Unless the caller asks for another delivery."""
    async with street.house(settings=under("reject")) as house:
        await house.create()
        await house.begin("a")
        assert (await refusal(house.prompt("b"))).details == {"reason": "turn_running"}
        assert (await house.prompt("b", delivery="queue")).state == "queued"


@in_simulation
async def test_input_stops_the_turn_where_auto_means_interrupt(street: Street) -> None:
    """Also where nobody may ask for that by name."""
    async with street.house(settings=under("interrupt", "queue")) as house:
        await house.create()
        turn = await house.begin("a")
        await house.prompt("waits", delivery="queue")
        result = await house.prompt("b")
        assert (result.state, house.puppet.was_cut_off(turn)) == ("started", True)
        assert (await house.puppet.next()).turn_id == result.turn_id
        assert (await house.session()).session.queue == ["waits"]


@in_simulation
async def test_a_delivery_that_is_not_allowed_is_refused_and_the_input_forgotten(street: Street) -> None:
    """Whether a turn runs or not; the same id may be sent again with another delivery."""
    async with street.house(settings=under("absorb", "queue")) as house:
        await house.create()
        version = (await house.session()).version
        with pytest.raises(Refused, match="one of: auto, queue"):
            await house.prompt("b", delivery="interrupt")
        turn = await house.begin("a")
        error = await refusal(house.prompt("b", delivery="interrupt"))
        assert error.details == {"reason": "delivery_not_allowed"}
        assert (await house.session()).version == version + 1
        assert not house.puppet.was_cut_off(turn)
        assert (await house.prompt("b")).state == "queued"


@in_simulation
async def test_a_repeat_is_answered_whatever_the_policy_is_by_then(street: Street) -> None:
    """An accepted input is never refused (G3)."""
    async with street.house() as house:
        await house.create()
        await house.begin("a")
        started = await house.prompt("b", delivery="interrupt")
    async with street.house(settings=under("absorb", "queue")) as house:
        assert await house.prompt("b", delivery="interrupt") == started
