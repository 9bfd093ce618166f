"""Cases of what an agent does: tool calls in every state, what it asks, actions and errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from midstream.protocol.values import Value
from midstream.server import Question, QuestionOption, ToolCall, Turn
from tests.laws.case import Cases
from tests.laws.scene import Scene
from tests.laws.world import pause

TOOLS = Cases()
ANSWERS: Value = {
    "kind": "question",
    "answers": [
        {"question_id": "name", "value": "Ada"},
        {"question_id": "colours", "value": ["red", "blue"]},
    ],
}


async def call_of(scene: Scene) -> tuple[Turn, ToolCall]:
    """Begin a turn that has a tool call which is ready."""
    turn = await scene.turn()
    async with turn.step() as step:
        call = await step.tool("delete", input={"path": "a.txt"}, title="Delete", tool_metadata={"v": 1})
    return turn, call


async def streaming_call_of(scene: Scene) -> ToolCall:
    """Begin a turn that has a tool call whose arguments stream."""
    step = await (await scene.turn()).step().__aenter__()
    call = await step.tool("delete", dynamic=True, call_provider_metadata={"acme": {"id": 1}})
    await call.append_input('{"pa')
    await pause()
    return call


async def running_call_of(scene: Scene) -> tuple[Turn, ToolCall]:
    """Begin a turn that has a tool call which runs."""
    turn, call = await call_of(scene)
    await call.run()
    return turn, call


async def waiting_call_of(scene: Scene, expires_in: float | None = None) -> tuple[Turn, ToolCall]:
    """Begin a turn that has a tool call which waits for an approval."""
    turn, call = await call_of(scene)
    await scene.approval(turn, call, expires_in=expires_in)
    return turn, call


@TOOLS()
async def a_tools_arguments_begin_to_stream(scene: Scene) -> AsyncGenerator[None]:
    step = await (await scene.turn()).step().__aenter__()
    yield
    await step.tool("delete", provider_executed=True)


@TOOLS()
async def a_tools_arguments_grow(scene: Scene) -> AsyncGenerator[None]:
    call = await streaming_call_of(scene)
    yield
    await call.append_input('th": "a.txt"}')


@TOOLS()
async def a_tool_with_its_arguments_comes(scene: Scene) -> AsyncGenerator[None]:
    step = await (await scene.turn()).step().__aenter__()
    yield
    await step.tool("delete", input={"path": "a.txt"})


@TOOLS()
async def input_streaming_to_ready(scene: Scene) -> AsyncGenerator[None]:
    call = await streaming_call_of(scene)
    yield
    await call.ready({"path": "a.txt"})


@TOOLS()
async def input_streaming_to_ready_unparsed(scene: Scene) -> AsyncGenerator[None]:
    call = await streaming_call_of(scene)
    yield
    await call.ready(raw_input='{"pa')


@TOOLS()
async def input_streaming_to_failed(scene: Scene) -> AsyncGenerator[None]:
    call = await streaming_call_of(scene)
    yield
    await call.fail("the model stopped")


@TOOLS()
async def ready_to_running(scene: Scene) -> AsyncGenerator[None]:
    _, call = await call_of(scene)
    yield
    await call.run()


@TOOLS()
async def ready_to_completed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await call_of(scene)
    yield
    await call.complete(None, provider_metadata={"acme": {"cached": True}})


@TOOLS()
async def ready_to_failed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await call_of(scene)
    yield
    await call.fail("no such tool")


@TOOLS()
async def ready_to_waiting_user(scene: Scene) -> AsyncGenerator[None]:
    turn, call = await call_of(scene)
    yield
    await scene.approval(turn, call, description="It cannot be undone.")


@TOOLS()
async def waiting_user_to_ready_by_an_approval(scene: Scene) -> AsyncGenerator[None]:
    await waiting_call_of(scene)
    yield
    await scene.approve()


@TOOLS()
async def waiting_user_to_ready_by_a_denial(scene: Scene) -> AsyncGenerator[None]:
    await waiting_call_of(scene)
    yield
    await scene.approve("denied")


@TOOLS()
async def waiting_user_to_ready_by_expiry(scene: Scene) -> AsyncGenerator[None]:
    await waiting_call_of(scene, expires_in=1.0)
    yield
    await pause(1.1)


@TOOLS()
async def waiting_user_to_running(scene: Scene) -> AsyncGenerator[None]:
    _, call = await waiting_call_of(scene)
    yield
    await call.run()


@TOOLS()
async def waiting_user_to_completed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await waiting_call_of(scene)
    yield
    await call.complete("done all the same")


@TOOLS()
async def waiting_user_to_failed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await waiting_call_of(scene)
    yield
    await call.fail("gave up")


@TOOLS()
async def running_to_running(scene: Scene) -> AsyncGenerator[None]:
    _, call = await running_call_of(scene)
    await call.progress({"percent": 10})
    yield
    await call.progress({"percent": 20})


@TOOLS()
async def running_to_waiting_user(scene: Scene) -> AsyncGenerator[None]:
    turn, call = await running_call_of(scene)
    yield
    await scene.approval(turn, call)


@TOOLS()
async def running_to_completed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await running_call_of(scene)
    await call.progress({"percent": 10})
    yield
    await call.complete({"deleted": True})


@TOOLS()
async def running_to_completed_with_a_long_output(scene: Scene) -> AsyncGenerator[None]:
    _, call = await running_call_of(scene)
    lines: list[Value] = ["ein längerer Satz"] * 10_000
    yield
    await call.complete({"lines": lines})


@TOOLS()
async def running_to_failed(scene: Scene) -> AsyncGenerator[None]:
    _, call = await running_call_of(scene)
    await call.progress({"percent": 10})
    yield
    await call.fail("disk full")


@TOOLS()
async def ready_stays_ready_where_approvals_are_given(scene: Scene) -> AsyncGenerator[None]:
    turn, call = await call_of(scene)
    await scene.mode("always-allow")
    yield
    assert (await turn.ask_approval(call, title="May I?")).approved


@TOOLS()
async def running_to_ready_where_approvals_are_given(scene: Scene) -> AsyncGenerator[None]:
    turn, call = await running_call_of(scene)
    await call.progress({"percent": 10})
    await scene.mode("always-allow")
    yield
    assert (await turn.ask_approval(call, title="May I go on?")).approved


@TOOLS()
async def waiting_user_to_ready_by_the_approval_mode(scene: Scene) -> AsyncGenerator[None]:
    await waiting_call_of(scene)
    yield
    await scene.mode("always-allow")


@TOOLS()
async def an_approval_without_a_tool_is_asked(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await scene.approval(turn)


async def questions_of(scene: Scene, turn: Turn) -> None:
    """Let the agent ask two questions."""
    options = [QuestionOption(value=value, label=value.title()) for value in ("red", "green", "blue")]
    scene.in_background(
        turn.ask(
            Question(question_id="name", question="Who?"),
            Question(question_id="colours", question="Which?", options=options, multiple=True),
            title="Two things",
        )
    )
    await scene.asked()


@TOOLS()
async def questions_are_asked(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await questions_of(scene, turn)


@TOOLS()
async def questions_are_answered(scene: Scene) -> AsyncGenerator[None]:
    await questions_of(scene, await scene.turn())
    yield
    await scene.respond(await scene.asked(), ANSWERS)


@TOOLS()
async def a_question_expires(scene: Scene) -> AsyncGenerator[None]:
    await scene.approval(await scene.turn(), expires_in=1.0)
    yield
    await pause(1.1)


@TOOLS()
async def an_action_begins_in_the_agents_message(scene: Scene) -> AsyncGenerator[None]:
    turn, _ = await call_of(scene)
    yield
    await turn.action("index", "Indexing", description="All files", data={"at": 0})


@TOOLS()
async def an_action_begins_in_a_message_of_its_own(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await turn.action("index", "Indexing")


@TOOLS()
async def an_action_goes_on(scene: Scene) -> AsyncGenerator[None]:
    action = await (await scene.turn()).action("index", "Indexing", data={"at": 0})
    yield
    await action.update(data={"at": 1})


@TOOLS()
async def an_action_completes(scene: Scene) -> AsyncGenerator[None]:
    action = await (await scene.turn()).action("index", "Indexing")
    yield
    await action.complete(title="Indexed")


@TOOLS()
async def an_action_fails(scene: Scene) -> AsyncGenerator[None]:
    action = await (await scene.turn()).action("index", "Indexing")
    yield
    await action.fail(description="No space left")


@TOOLS()
async def an_action_ends_in_a_message_that_was_done(scene: Scene) -> AsyncGenerator[None]:
    turn, _ = await call_of(scene)
    action = await turn.action("index", "Indexing")
    await scene.prompt()
    await turn.take_inputs()
    yield
    await action.complete()


@TOOLS()
async def an_error_joins_the_agents_message(scene: Scene) -> AsyncGenerator[None]:
    turn, _ = await call_of(scene)
    yield
    await turn.error("rate_limited", "Too many requests")


@TOOLS()
async def an_error_has_a_message_of_its_own(scene: Scene) -> AsyncGenerator[None]:
    turn = await scene.turn()
    yield
    await turn.error("rate_limited", "Too many requests", recoverable=False)
