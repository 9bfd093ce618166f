"""Agents in the server's process: what they read, what they ask, and what they show."""

from __future__ import annotations

import asyncio

import pytest

from midstream.protocol.model import (
    ActionPart,
    ApprovalResponse,
    DataPart,
    Question,
    QuestionAnswer,
    QuestionOption,
    QuestionResponse,
    TextPart,
)
from tests.server.sessions.agent_turn import answer, begin
from tests.server.sessions.house import Street, in_simulation, parts_of, refusal


@in_simulation
async def test_an_agent_is_given_its_prompt_and_all_that_was_said(street: Street) -> None:
    """Whole and in order, internal messages and streamed text included; the newest where it asks for few."""
    async with street.house() as house:
        await house.create()
        await house.prompt("a", TextPart(text="one"), DataPart(data_type="d", data=1), TextPart(text="two"))
        turn = await house.puppet.next()
        assert (turn.session_id, turn.turn_id) == ("s", turn.prompt.turn_id)
        assert (turn.prompt.message_id, turn.prompt_text) == ("a", "one\n\ntwo")
        hint = await turn.internal(TextPart(text="hint"))
        step = await turn.step().__aenter__()
        text = await step.text().__aenter__()
        await text.append("half")
        context = (await turn.context()).messages
        assert context == await house.messages()
        assert context[:2] == [turn.prompt, hint]
        assert parts_of(context[2])[0]["text"] == "half"
        assert (await turn.context(limit=2)).messages == context[1:]
        assert (await turn.context(limit=50)).messages == context


@in_simulation
async def test_what_an_agent_is_given_is_its_own(street: Street) -> None:
    """What it changes in it changes nothing for anybody else."""
    async with street.house() as house:
        await house.create()
        recorder, early = await house.subscribe(), await house.subscribe()
        house.registry.leave("s", early)
        await house.prompt("a", DataPart(data_type="d", data={"n": 1}))
        turn = await house.puppet.next()
        async with turn.step() as step:
            await step.data("d", {"n": 1})
        await house.prompt("b", DataPart(data_type="d", data={"n": 1}))
        given = [turn.prompt, *(await turn.context()).messages, *await turn.take_inputs()]
        for message in given:
            for part in message.parts:
                assert isinstance(part, DataPart)
                assert isinstance(part.data, dict)
                part.data["n"] = 2
        late = await house.subscribe()
        for reader in (recorder, late, await house.resume(early)):
            for message in await house.equal(reader):
                assert [part["data"] for part in parts_of(message)] == [{"n": 1}]


@in_simulation
async def test_steering_input_is_taken_between_steps_and_answered_below(street: Street) -> None:
    """In order, and not what was sent to be queued; with none there is nothing."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        version = recorder.replica.version
        assert await turn.take_inputs() == []
        assert recorder.replica.version == version
        async with turn.step() as step, step.text() as text:
            await text.append("first")
        for name in ("b", "c"):
            await house.prompt(name)
        await house.prompt("own turn", delivery="queue")
        taken = await turn.take_inputs()
        assert [message.message_id for message in taken] == ["b", "c"]
        assert {message.turn_id for message in taken} == {turn.turn_id}
        async with turn.step() as step, step.text() as text:
            await text.append("second")
        messages = await house.equal(recorder)
        assert taken == messages[2:4]
        assert [message.role for message in messages] == ["user", "agent", "user", "user", "agent"]
        assert (await house.prompt("b")).state == "absorbed"
        await house.complete(turn)
        assert (await house.puppet.next()).prompt_text == "text of own turn"


@in_simulation
async def test_an_approval_waits_for_its_answer_and_so_does_its_tool(street: Street) -> None:
    """The phase says so; afterwards the agent runs the tool, or not."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        async with turn.step() as step:
            call = await step.tool("delete", input={"path": "a"})
        asking = asyncio.create_task(turn.ask_approval(call, title="Delete?", description="All of it"))
        await recorder.until(lambda: len(recorder.replica.messages()[-1].parts) == 2)
        assert recorder.replica.running_turn is not None
        assert recorder.replica.running_turn.phase == "waiting-user"
        [asked] = await house.asked()
        request = asked.interaction.request
        assert (request.title, request.description) == ("Delete?", "All of it")
        assert asked.interaction.tool_call_id == call.tool_call_id
        denial = ApprovalResponse(decision="denied", reason="no")
        await house.respond(asked.interaction.interaction_id, denial, subject="bob")
        approval = await asking
        assert (approval.approved, approval.status, approval.reason, approval.resolved_by) == (
            False,
            "resolved",
            "no",
            "bob",
        )
        await call.fail("denied")
        tool, _ = await answer(house, recorder)
        assert (tool["state"], tool["error"]) == ("failed", "denied")


@in_simulation
async def test_questions_are_answered_by_their_ids(street: Street) -> None:
    """One string, or a list where several may be chosen; nothing where nobody answered in time."""
    async with street.house() as house:
        _, turn = await begin(house)
        options = [QuestionOption(value="red"), QuestionOption(value="blue")]
        questions = (
            Question(question_id="name", question="Your name?"),
            Question(question_id="colors", question="Which?", options=options, multiple=True),
        )
        asking = asyncio.create_task(turn.ask(*questions, title="Tell me", expires_in=60))
        await asyncio.sleep(1)
        [asked] = await house.asked()
        given = [
            QuestionAnswer(question_id="colors", value=["blue"]),
            QuestionAnswer(question_id="name", value="Ann"),
        ]
        await house.respond(asked.interaction.interaction_id, QuestionResponse(answers=given))
        answers = await asking
        assert (answers.answered, answers.status, answers.resolved_by) == (True, "resolved", "ann")
        assert answers.values == {"name": "Ann", "colors": ["blue"]}
        start = street.loop.time()
        late = await turn.ask(*questions, title="Again", expires_in=60)
        assert street.loop.time() - start == pytest.approx(60, abs=0.01)
        assert (late.answered, late.status, late.values) == (False, "expired", {})


@in_simulation
async def test_two_questions_at_once_each_get_their_own_answer(street: Street) -> None:
    """In whatever order they are answered."""
    async with street.house() as house:
        _, turn = await begin(house)
        asking = [
            asyncio.create_task(turn.ask(Question(question_id="q", question=text), title=text))
            for text in ("first", "second")
        ]
        await asyncio.sleep(1)
        for asked in reversed(await house.asked()):
            title = asked.interaction.request.title
            given = [QuestionAnswer(question_id="q", value=f"to {title}")]
            await house.respond(asked.interaction.interaction_id, QuestionResponse(answers=given))
        answers = [await one for one in asking]
        assert [one.values for one in answers] == [{"q": "to first"}, {"q": "to second"}]


@in_simulation
async def test_a_question_that_is_none_is_refused(street: Street) -> None:
    """And leaves nothing that waits."""
    async with street.house() as house:
        _, turn = await begin(house)
        assert (await refusal(turn.ask(title="nothing"))).details == {"field": "request.questions"}
        assert await house.asked() == []
        running = (await house.turn()).turn
        assert running is not None
        assert running.phase == "starting"


@in_simulation
async def test_an_action_is_shown_from_its_beginning_to_its_end(street: Street) -> None:
    """In the message that streams, or in one of its own that is done at once; what is not given stays."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        action = await turn.action("index", "Indexing", description="files", data={"n": 0})
        assert [message.state for message in recorder.replica.messages()[1:]] == ["done"]
        await action.update(data={"n": 1})
        await action.update(title="Still indexing")
        await action.complete(description="done")
        assert (await refusal(action.update(title="late"))).code == "illegal_transition"
        async with turn.step() as step:
            await step.marker()
        failing = await turn.action("upload", "Uploading")
        await failing.fail(title="Upload failed")
        [first] = await answer(house, recorder)
        assert {key: first[key] for key in ("state", "title", "description", "data")} == {
            "state": "completed",
            "title": "Still indexing",
            "description": "done",
            "data": {"n": 1},
        }
        second = (await house.equal(recorder))[2].parts[1]
        assert isinstance(second, ActionPart)
        assert (second.state, second.title) == ("failed", "Upload failed")


@in_simulation
async def test_an_error_is_kept_and_the_turn_goes_on(street: Street) -> None:
    """Of the turn, or of the session."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        await turn.error("rate_limited", "Wait.")
        await turn.error("quota", "Nothing left.", recoverable=False, scope="session")
        errors = [parts_of(message)[0] for message in (await house.equal(recorder))[1:]]
        assert [(part["code"], part["recoverable"], part["scope"]) for part in errors] == [
            ("rate_limited", True, "turn"),
            ("quota", False, "session"),
        ]
        assert (await house.complete(turn)).state == "completed"


@in_simulation
async def test_a_phase_is_one_that_there_is(street: Street) -> None:
    """Another one would make the turn unreadable for its next reader."""
    async with street.house() as house:
        recorder, turn = await begin(house)
        await turn.phase("running-tool")
        assert recorder.replica.running_turn is not None
        assert recorder.replica.running_turn.phase == "running-tool"
        error = await refusal(turn.phase("thinking"))  # type: ignore[arg-type]  # what an untyped agent does
        assert error.details == {"field": "phase"}
        await house.complete(turn)
        assert (await house.turn(turn.turn_id)).turn is not None
