"""The loop of one session."""

from __future__ import annotations

from tests.server.sessions.house import Street, in_simulation, parts_of


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
