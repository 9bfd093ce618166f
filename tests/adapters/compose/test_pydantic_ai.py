"""What is composed for Pydantic AI: messages that the library takes, and its own ones back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import cast

from hypothesis import given
from msgspec import structs
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    CompactionPart,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from midstream.adapters.compose import Context, compose, pydantic_ai
from midstream.adapters.compose.dialogue import OPENING
from midstream.adapters.kept import KeptParts
from midstream.adapters.pydantic_ai import PydanticAIReader
from midstream.protocol import model
from midstream.protocol.model import Message
from tests.adapters.compose.histories import histories, said

LONGEST_ID = 40


@given(histories())
def test_every_history_is_what_the_library_writes_and_reads(history: list[Message]) -> None:
    """It comes back from the library's own JSON as it was."""
    messages = compose(history, "pydantic-ai")
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages)) == messages


@given(histories())
def test_every_call_has_its_result_directly_behind_its_response(history: list[Message]) -> None:
    """In their order, under ids that no other call has and that every model takes."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in compose(history, "pydantic-ai"):
        returned = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
        assert returned == waiting
        waiting = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        assert all(0 < len(call_id) <= LONGEST_ID and call_id not in seen for call_id in waiting)
        seen.update(waiting)
        assert message.parts
    assert not waiting


@given(histories())
async def test_a_run_takes_every_history(history: list[Message]) -> None:
    """A real agent goes on with it, and its model is given all that people said."""
    heard: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        heard.extend(messages)
        return ModelResponse(parts=[TextPart("fine")])

    messages = compose([*history, said("user", model.TextPart(text="And now?"))], "pydantic-ai")
    result = await Agent(FunctionModel(answer)).run(message_history=messages)
    assert result.output == "fine"
    assert prompts_of(heard) == prompts_of(messages)


def prompts_of(messages: Sequence[ModelMessage]) -> list[object]:
    """All that people said, in order."""
    parts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return [
        item for part in parts for item in ([part.content] if isinstance(part.content, str) else part.content)
    ]


async def test_what_a_run_streamed_goes_back_as_it_was() -> None:
    """Read into parts, and composed again: the responses and results that Pydantic AI itself keeps."""
    answers: list[list[object]] = [
        [
            {0: DeltaThinkingPart(content="hm ")},
            {0: DeltaThinkingPart(content="yes", signature="SIG")},
            "Let me look.",
            {1: DeltaToolCall(name="look", json_args='{"at":1}', tool_call_id="c1")},
            {2: DeltaToolCall(name="look", json_args='{"at":2}', tool_call_id="c2")},
        ],
        ["Done."],
    ]
    left = iter(answers)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        for piece in next(left):
            yield cast("str", piece)

    agent = Agent(FunctionModel(stream_function=stream))

    @agent.tool_plain
    async def look(at: int) -> list[object]:
        return [{"seen": at}, BinaryImage(b"\x00\x01\x02", media_type="image/png")]

    kept = KeptParts()
    async with agent.run_stream_events("Go.") as events, kept.step() as step:
        await step.feed(events, reader=PydanticAIReader())
        own = events.all_messages()
    history = [said("user", model.TextPart(text="Go.")), said("agent", *kept.parts, sequence=2)]
    assert [bare(message) for message in compose(history, "pydantic-ai")] == [
        bare(message) for message in own
    ]


def bare(message: ModelMessage) -> list[object]:
    """What a message says, without when, and with arguments as a map."""
    said: list[object] = []
    for part in message.parts:
        match part:
            case ToolCallPart():
                said.append((part.tool_name, part.args_as_dict(), part.tool_call_id))
            case ToolReturnPart():
                said.append((part.tool_name, part.content, part.tool_call_id, part.outcome))
            case UserPromptPart():
                said.append(part.content)
            case _:
                said.append(part)
    return said


def test_files_have_the_library_s_own_forms() -> None:
    """Bytes, addresses, text in words, and a note where there is neither."""
    picture = model.FilePart(url="data:image/png;base64,AAEC", media_type="image/png")
    far = model.FilePart(url="https://h/a.png", media_type="image/png")
    paper = model.FilePart(url="https://h/a.pdf", media_type="application/pdf")
    letter = model.FilePart(url="data:text/plain,Dear%20all", media_type="text/plain", filename="a.txt")
    lost = model.FilePart(url="file:///x", media_type="application/zip")
    sound = model.FilePart(url="data:audio/wav;base64,AAEC", media_type="audio/wav")
    (message,) = compose([said("user", picture, far, paper, letter, lost)], "pydantic-ai")
    heard = pydantic_ai.compose(Context(messages=[said("user", sound)]), takes={"audio/"})
    assert prompts_of(heard) == [BinaryContent(b"\x00\x01\x02", media_type="audio/wav")]
    assert all(isinstance(word, str) for word in prompts_of(compose([said("user", sound)], "pydantic-ai")))
    assert prompts_of([message]) == [
        BinaryImage(b"\x00\x01\x02", media_type="image/png"),
        ImageUrl("https://h/a.png", media_type="image/png"),
        DocumentUrl("https://h/a.pdf", media_type="application/pdf"),
        "[Attached file: a.txt]\nDear all",
        "[Attached file, whose content is not shown: unnamed, application/zip]",
    ]


def test_what_a_provider_did_itself_goes_back_to_it() -> None:
    """Its tools with their results, its pictures, its compactions, under the names of the response."""
    own: model.ProviderMetadata = {
        "pydantic-ai": {"provider_name": "anthropic", "id": "i1", "canonical_system": "a"}
    }
    search = model.ToolPart(
        tool_call_id="n1",
        tool_name="web_search",
        state="completed",
        input={"query": "q"},
        output=[{"url": "u"}],
        provider_executed=True,
        call_provider_metadata=own,
    )
    compacted: model.ProviderMetadata = {
        "pydantic-ai": {"part_kind": "compaction", "provider_name": "anthropic"}
    }
    summary = model.ReasoningPart(text="So far.", state="done", provider_metadata=compacted)
    picture = model.FilePart(url="data:image/png;base64,AAEC", media_type="image/png", provider_metadata=own)
    history = [said("user", model.TextPart(text="Go.")), said("agent", search, summary, picture, sequence=2)]
    response = compose(history, "pydantic-ai")[-1]
    assert isinstance(response, ModelResponse)
    call, back, compaction, file = response.parts
    assert isinstance(call, NativeToolCallPart)
    assert (call.args, call.provider_name, call.id) == ({"query": "q"}, "anthropic", "i1")
    assert isinstance(back, NativeToolReturnPart)
    assert (back.content, back.provider_name, back.tool_call_id) == ([{"url": "u"}], "anthropic", "n1")
    assert compaction == CompactionPart("So far.", provider_name="anthropic")
    assert file == FilePart(
        BinaryImage(b"\x00\x01\x02", media_type="image/png"), id="i1", provider_name="anthropic"
    )
    assert (response.provider_name, response.canonical_system) == ("anthropic", "a")


def test_a_call_of_a_provider_that_did_not_complete_is_left_out() -> None:
    """No provider takes half of one."""
    own: model.ProviderMetadata = {"pydantic-ai": {"provider_name": "anthropic"}}
    search = model.ToolPart(
        tool_call_id="n1",
        tool_name="web_search",
        state="running",
        input={},
        provider_executed=True,
        call_provider_metadata=own,
    )
    history = [said("user", model.TextPart(text="Go.")), said("agent", search, sequence=2)]
    assert len(compose(history, "pydantic-ai")) == 1


def test_reasoning_goes_back_only_with_what_its_provider_signed() -> None:
    """That of another adapter stays here, and thinking without an answer behind it too."""
    own: model.ProviderMetadata = {"pydantic-ai": {"provider_name": "anthropic", "signature": "SIG"}}
    signed = model.ReasoningPart(text="hm", state="done", provider_metadata=own)
    foreign = model.ReasoningPart(
        text="hm", state="done", provider_metadata={"anthropic": {"signature": "S"}}
    )
    answer = model.TextPart(text="So.", state="done")
    before = said("user", model.TextPart(text="Go."))
    messages = compose([before, said("agent", signed, foreign, answer, sequence=2)], "pydantic-ai")
    thinking = ThinkingPart("hm", signature="SIG", provider_name="anthropic")
    assert [*messages[-1].parts] == [thinking, TextPart("So.")]
    assert len(compose([before, said("agent", signed, sequence=2)], "pydantic-ai")) == 1


def test_what_a_tool_gave_the_model_beside_its_result_follows_it() -> None:
    """Pydantic AI's ``ToolReturn(content=...)``."""
    call = model.ToolPart(
        tool_call_id="c1",
        tool_name="look",
        state="completed",
        input={},
        output=1,
        result_provider_metadata={"pydantic-ai": {"content": ["See", {"kind": "binary"}, "this."]}},
    )
    (_, request) = compose([said("agent", call)], "pydantic-ai")[1:]
    returned, prompt = request.parts
    assert isinstance(returned, ToolReturnPart)
    assert isinstance(prompt, UserPromptPart)
    assert (returned.content, prompt.content) == (1, "See\n\nthis.")


def test_the_outcome_of_a_call_is_told_in_the_library_s_words() -> None:
    """Denied, failed, and cut off are not the same."""
    running = model.ToolPart(tool_call_id="c1", tool_name="look", state="running", input={})
    failed = structs.replace(running, state="failed", error="No.")
    done = structs.replace(running, state="completed", output=None)
    outcomes = [
        part.outcome
        for message in compose([said("agent", running, failed, done)], "pydantic-ai")
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert outcomes == ["interrupted", "failed", "success"]


def test_a_history_that_begins_with_the_agent_is_opened() -> None:
    """Every model's first message is a request."""
    messages = compose([said("agent", model.TextPart(text="Hello.", state="done"))], "pydantic-ai")
    assert isinstance(messages[0], ModelRequest)
    assert prompts_of(messages) == [OPENING]
