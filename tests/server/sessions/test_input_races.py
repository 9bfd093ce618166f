"""Input from several devices in the same moment: one order, one running turn, one end of each (SPEC 8)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.protocol import calls
from midstream.protocol.errors import Refused
from midstream.protocol.frames import Change
from midstream.protocol.limits import Limits
from midstream.protocol.model import ApprovalResponse, TextPart
from midstream.server import Turn, TurnFailed
from midstream.server.inputs import DELIVERIES
from midstream.server.sessions.services import Settings
from tests.server.sessions.house import House, Street, decoded, in_simulation
from tests.server.sessions.recorder import Recorder

if TYPE_CHECKING:
    from midstream.protocol.calls import CancelQueue, Delivery
    from midstream.protocol.model import Turn as TurnEntity
    from midstream.server.sessions.broadcast import Broadcast
    from midstream.server.sessions.commands import Answer

MOMENTS = 12
"""How many steps of the event loop lie between two things that happen at once, at most."""


class Watch(Recorder):
    """A reader that holds every version to what must be true of turns and the queue in it."""

    def __init__(self) -> None:
        super().__init__(limit=200)
        self._left: set[str] = set()
        self._waits: set[str] = set()

    def publish(self, broadcast: Broadcast) -> None:
        """Take a frame, and look at what a person would see now."""
        super().publish(broadcast)
        session = self.replica.session
        assert session is not None
        running = [turn for turn in self.replica.turns.values() if turn.state == "running"]
        assert [turn.turn_id for turn in running] == [name for name in [session.running_turn_id] if name]
        assert all(turn.phase_since >= turn.started_at for turn in running)
        waits = set(session.queue)
        assert len(waits) == len(session.queue)
        stops = any(turn.error and turn.error.code == "runtime_interrupted" for turn in self._ended())
        assert running or not waits or stops, "input waits, and nothing runs that it waits for"
        assert not waits & self._left, "an input that left the queue came back"
        self._left |= self._waits - waits
        self._waits = waits
        assert not waits & {message.message_id for message in self.replica.messages()}

    def _ended(self) -> list[TurnEntity]:
        """Return the turns of the change that came last."""
        last = self.frames[-1]
        return list(last.content.turns) if isinstance(last, Change) else []


def post_cancel(house: House, message_id: str, subject: str = "ann") -> asyncio.Future[Answer]:
    """Ask for an input back."""
    params = calls.CancelInputParams(session_id="s", message_id=message_id)
    return house.post("cancel_input", params, subject=subject)


def post_stop(
    house: House, turn_id: str = "current", cancel_queue: CancelQueue = "own", subject: str = "ann"
) -> asyncio.Future[Answer]:
    """Ask for a stop."""
    params = calls.StopParams(session_id="s", turn_id=turn_id, cancel_queue=cancel_queue)
    return house.post("stop", params, subject=subject)


def post_prompt(
    house: House, message_id: str, delivery: Delivery = "auto", subject: str = "ann"
) -> asyncio.Future[Answer]:
    """Hand in an input."""
    params = calls.PromptParams(
        session_id="s", message_id=message_id, parts=[TextPart(text=message_id)], delivery=delivery
    )
    return house.post("prompt", params, subject=subject)


async def moments(count: int) -> None:
    """Let the loop take so many steps."""
    for _ in range(count):
        await asyncio.sleep(0)


async def user_messages(house: House) -> list[str]:
    """Return the ids of the inputs that became messages, in order."""
    return [message.message_id for message in await house.messages() if message.role == "user"]


@in_simulation
async def test_an_input_is_taken_back_while_its_turn_is_about_to_start(street: Street) -> None:
    """Either it is cancelled and nothing starts, or it has started and the answer says so."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        states: set[str] = set()
        for number in range(MOMENTS):
            turn = await house.begin(f"a{number}")
            await house.prompt(name := f"b{number}")
            house.puppet.finish(turn)
            await moments(number)
            answer = decoded(calls.PromptResult, await post_cancel(house, name))
            states.add(answer.state)
            if answer.state == "started":
                following = await house.puppet.next()
                assert (following.turn_id, following.prompt.message_id) == (answer.turn_id, name)
                await house.complete(following)
            await house.ended(turn)
            assert (name in await user_messages(house)) == (answer.state == "started")
            assert await house.prompt(name) == answer
        assert states == {"cancelled", "started"}
        await house.equal(watch)


@in_simulation
async def test_an_input_is_taken_back_while_the_agent_takes_it_in(street: Street) -> None:
    """One of both has it, and the other is told."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        turn = await house.begin("a")
        states: set[str] = set()
        for number in range(MOMENTS):
            await house.prompt(name := f"b{number}")
            taking = asyncio.create_task(turn.take_inputs())
            await moments(number % 4)
            answer = decoded(calls.PromptResult, await post_cancel(house, name))
            states.add(answer.state)
            taken = [message.message_id for message in await taking]
            assert taken == ([name] if answer.state == "absorbed" else [])
            assert answer.turn_id == (turn.turn_id if taken else UNSET)
        assert states == {"cancelled", "absorbed"}
        await house.equal(watch)


@in_simulation
async def test_two_devices_take_the_same_input_back(street: Street) -> None:
    """Both are told that it is cancelled, and it was cancelled once."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        await house.begin("a")
        await house.prompt("b")
        version = (await house.session()).version
        answers = await asyncio.gather(post_cancel(house, "b"), post_cancel(house, "b", "bob"))
        assert {decoded(calls.PromptResult, answer).state for answer in answers} == {"cancelled"}
        assert (await house.session()).version == version + 1
        await house.equal(watch)


@in_simulation
async def test_of_stops_at_once_that_name_the_turn_one_stops_it(street: Street) -> None:
    """The others find it stopped, and leave the turn that follows alone."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        turn = await house.begin("a")
        await house.prompt("b", subject="carl")
        posted = [post_stop(house, turn.turn_id, subject=who) for who in ("ann", "bob", "ann")]
        stops = [decoded(calls.StopResult, answer) for answer in await asyncio.gather(*posted)]
        assert [stop.stopped for stop in stops] == [True, False, False]
        following = await house.puppet.next()
        assert (following.prompt.message_id, house.puppet.was_cut_off(turn)) == ("b", True)
        assert not house.puppet.was_cut_off(following)
        await house.equal(watch)


@in_simulation
async def test_a_stop_from_another_device_cancels_only_what_that_device_sent(street: Street) -> None:
    """By subject, as it asks for its own; what others wait for starts in the same change."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        turn = await house.begin("a")
        for name, who in (("ann1", "ann"), ("bob1", "bob"), ("ann2", "ann"), ("bob2", "bob")):
            await house.prompt(name, subject=who)
        frames = len(watch.frames)
        stop = await house.stop(turn.turn_id, subject="bob")
        assert (stop.stopped, stop.cancelled) == (True, ["bob1", "bob2"])
        assert len(watch.frames) == frames + 1
        assert (await house.puppet.next()).prompt.message_id == "ann1"
        assert (await house.session()).session.queue == ["ann2"]
        await house.equal(watch)


@in_simulation
async def test_a_stop_and_the_agents_end_at_once_are_one_end(street: Street) -> None:
    """The turn is stopped, or it completed and the stop found nothing; what waits starts once."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        outcomes: set[str] = set()
        for number in range(MOMENTS):
            turn = await house.begin(f"a{number}")
            await house.prompt(f"b{number}", subject="bob")
            house.puppet.finish(turn)
            await moments(number)
            stop = decoded(calls.StopResult, await post_stop(house, turn.turn_id))
            ended = await house.ended(turn)
            assert ended.state == ("stopped" if stop.stopped else "completed")
            outcomes.add(ended.state)
            following = await house.puppet.next()
            assert following.prompt.message_id == f"b{number}"
            await house.complete(following)
        assert outcomes == {"stopped", "completed"}
        await house.equal(watch)


@in_simulation
async def test_of_interrupts_at_once_each_stops_the_one_before(street: Street) -> None:
    """In the order in which they were taken; each was accepted, and the last one runs."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        first = await house.begin("a")
        await house.prompt("waits")
        names = [f"i{number}" for number in range(5)]
        posted = [post_prompt(house, name, "interrupt", subject=name) for name in names]
        results = [decoded(calls.PromptResult, answer) for answer in await asyncio.gather(*posted)]
        assert {result.state for result in results} == {"started"}
        turns = [await house.puppet.next()]
        while turns[-1].turn_id != results[-1].turn_id:
            turns.append(await house.puppet.next())
        states = [(await house.turn(str(result.turn_id))).turn for result in results]
        assert [turn.state for turn in states if turn] == ["stopped"] * 4 + ["running"]
        assert (await house.ended(first)).state == "stopped"
        assert await user_messages(house) == ["a", *names]
        assert (await house.session()).session.queue == ["waits"]
        await house.equal(watch)


@in_simulation
async def test_an_interrupt_and_a_stop_at_once(street: Street) -> None:
    """A stop that names the old turn never hits the new one, whichever came first."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        for number, stop_first in enumerate((True, False)):
            turn = await house.begin(f"a{number}")
            stop = post_stop(house, turn.turn_id) if stop_first else None
            prompt = post_prompt(house, f"b{number}", "interrupt")
            stop = stop or post_stop(house, turn.turn_id)
            assert decoded(calls.StopResult, await stop).stopped == stop_first
            assert decoded(calls.PromptResult, await prompt).state == "started"
            following = await house.puppet.next()
            assert following.prompt.message_id == f"b{number}"
            assert (await house.turn()).turn == watch.replica.running_turn
            await house.complete(following)
        await house.equal(watch)


class Device:
    """One of several who write, stop and take back at random, as fast as they can."""

    def __init__(self, house: House, subject: str, chance: Random, accepted: set[str]) -> None:
        self._house = house
        self._subject = subject
        self._chance = chance
        self._accepted = accepted
        self._mine: list[str] = []

    async def play(self, steps: int) -> None:
        """Do so many things."""
        things = (self._prompt, self._prompt, self._prompt, self._stop, self._take_back, self._repeat)
        for _ in range(steps):
            await self._chance.choice(things)()
            await asyncio.sleep(self._chance.choice((0, 0, 0.001, 0.01)))

    async def _prompt(self) -> None:
        self._mine.append(name := f"{self._subject}{len(self._mine)}")
        delivery = self._chance.choice(DELIVERIES)
        if not isinstance(await post_prompt(self._house, name, delivery, self._subject), Refused):
            self._accepted.add(name)

    async def _stop(self) -> None:
        scopes: tuple[CancelQueue, ...] = ("own", "all", "none")
        await post_stop(self._house, "current", self._chance.choice(scopes), self._subject)

    async def _take_back(self) -> None:
        if self._mine:
            await post_cancel(self._house, self._chance.choice(self._mine), self._subject)

    async def _repeat(self) -> None:
        if self._accepted:
            name = self._chance.choice(sorted(self._accepted))
            await post_prompt(self._house, name, "auto", self._subject)


@in_simulation
async def test_a_storm_of_input_from_three_devices_keeps_one_turn_running_and_loses_nothing(
    street: Street,
) -> None:
    """Every delivery, stops and cancellations, while the agent takes in, ends and fails as it likes."""
    chance = street.loop.random

    async def agent(turn: Turn) -> None:
        for _ in range(chance.randrange(4)):
            async with turn.step() as step, step.text() as text:
                await text.append("word ")
                await asyncio.sleep(chance.choice((0, 0, 0.001, 0.02)))
            await turn.take_inputs()
        if chance.random() < 0.1:
            raise TurnFailed("unlucky", "It happens.")

    async with street.house(agent, settings=Settings(limits=Limits(queue=4))) as house:
        await house.create()
        watch = await house.subscribe(Watch())
        accepted: set[str] = set()
        devices = [Device(house, subject, chance, accepted) for subject in ("ann", "bob", "carl")]
        await asyncio.gather(*(device.play(60) for device in devices))
        await watch.until(lambda: watch.replica.running_turn is None)
        written = await user_messages(house)
        assert len(written) == len(set(written))
        assert set(written) <= accepted
        states: set[str] = set()
        for name in sorted(accepted):
            result = await house.prompt(name, TextPart(text=name))
            assert (result.state == "cancelled") == (name not in written)
            states.add(result.state)
        assert states == {"started", "absorbed", "cancelled"}
        await house.equal(watch)


@in_simulation
async def test_phases_follow_what_the_agent_does_with_the_servers_time(street: Street) -> None:
    """Each phase says since when, by the server's clock, which never goes back for the session's readers."""
    async with street.house() as house:
        await house.create()
        watch = await house.subscribe(Watch())
        start = street.clock.wall_ms()
        turn = await house.begin("a")
        async with turn.step() as step:
            await asyncio.sleep(1)
            async with step.text() as text:
                await text.append("Let me look")
            await asyncio.sleep(1)
            call = await step.tool("look", input=1)
        asking = asyncio.create_task(turn.ask_approval(call, title="?"))
        await asyncio.sleep(1)
        [asked] = await house.asked()
        await house.respond(asked.interaction.interaction_id, ApprovalResponse(decision="approved"))
        await asking
        await asyncio.sleep(1)
        street.clock.skew_wall(-60_000)
        await call.run()
        await asyncio.sleep(1)
        await call.complete(1)
        await house.complete(turn)
        seen = [
            (turn.phase, turn.phase_since - start)
            for change in watch.changes
            for turn in change.content.turns
        ]
        distinct = [now for before, now in pairwise([None, *seen]) if now != before]
        assert distinct == [
            ("starting", 0),
            ("waiting-model", 0),
            ("streaming", 1_000),
            ("waiting-user", 2_000),
            ("waiting-model", 3_000),
            ("running-tool", 3_000),
            ("waiting-model", 3_000),
        ]
        await house.equal(watch)
