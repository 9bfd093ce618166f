"""A replayed recording becomes the parts that the provider streamed, through a real server."""

import json
from pathlib import Path

import pytest

from midstream.client.session import Session
from midstream.protocol.model import DataPart, ErrorPart, Part, ReasoningPart, TextPart, ToolPart, Turn
from midstream.server.agents import replay_agent
from midstream.server.agents.recordings import SUFFIX, Called, Event, Said, Thought, read_recording
from midstream.server.agents.replay import NO_RESULT, PLAYED, UNREADABLE, USAGE
from tests.server.agents.conftest import Join

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "streams" / "openai-chat"


def chunk(finish_reason: str | None = None, usage: object = None, **delta: object) -> dict[str, object]:
    """Build a chunk with one choice."""
    return {"created": 1, "choices": [{"delta": delta, "finish_reason": finish_reason}], "usage": usage}


def call(arguments: str, *, index: int = 0, name: str = "") -> dict[str, object]:
    """Build a piece of a tool call."""
    return {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}}


def record(folder: Path, name: str, *chunks: dict[str, object]) -> None:
    """Write a recording."""
    (folder / f"{name}{SUFFIX}").write_text("".join(f"{json.dumps(line)}\n" for line in chunks))


async def played(session: Session, prompt: str) -> tuple[Turn, list[Part]]:
    """Give a prompt; return its turn, and the agent's parts but the one that names the recording."""
    turn = await (await session.prompt(prompt)).finished()
    messages = [message for message in session.messages if message.turn_id == turn.turn_id]
    answer = [part for message in messages if message.role == "agent" for part in message.parts]
    return turn, [part for part in answer if not (isinstance(part, DataPart) and part.data_type == PLAYED)]


async def test_thoughts_words_calls_and_usage_become_parts_in_their_order(join: Join, tmp_path: Path) -> None:
    """A thought that goes on after a word is a part of its own."""
    record(
        tmp_path,
        "all",
        chunk(reasoning_content="I "),
        chunk(reasoning_content="think"),
        chunk(content="So"),
        chunk(reasoning_content="again"),
        chunk(tool_calls=[call("", name="add"), call('{"b"', index=1, name="sub")]),
        chunk(tool_calls=[call('{"a": 1}'), call(": 2}", index=1)]),
        chunk("tool_calls", usage={"total_tokens": 7}),
    )
    turn, parts = await played(await join(replay_agent(tmp_path, speed=0)), "go")
    assert turn.state == "completed"
    first, word, second, add, sub, usage = parts
    assert isinstance(first, ReasoningPart)
    assert isinstance(word, TextPart)
    assert isinstance(second, ReasoningPart)
    assert [first.text, word.text, second.text] == ["I think", "So", "again"]
    assert isinstance(add, ToolPart)
    assert isinstance(sub, ToolPart)
    assert (add.tool_name, add.input, add.input_text) == ("add", {"a": 1}, '{"a": 1}')
    assert (sub.tool_name, sub.input, sub.error) == ("sub", {"b": 2}, NO_RESULT)
    assert isinstance(usage, DataPart)
    assert (usage.data_type, usage.data) == (USAGE, {"total_tokens": 7})


@pytest.mark.parametrize("arguments", ['{"a":', "NaN", '{"a": 9007199254740993}'])
async def test_arguments_that_cannot_be_read_are_kept_as_they_came(
    join: Join, tmp_path: Path, arguments: str
) -> None:
    """A cut stream and values that the protocol does not carry fail the call, not the turn."""
    record(tmp_path, "bad", chunk(tool_calls=[call(arguments, name="add")]))
    turn, (part,) = await played(await join(replay_agent(tmp_path, speed=0)), "go")
    assert turn.state == "completed"
    assert isinstance(part, ToolPart)
    assert (part.state, part.raw_input, part.error) == ("failed", arguments, UNREADABLE)


async def test_recordings_follow_each_other_over_turns(join: Join, tmp_path: Path) -> None:
    """Which was last is known from the conversation itself; a name in the prompt wins."""
    for name in ("a", "b", "c"):
        record(tmp_path, f"take-{name}", chunk(content=name))
    session = await join(replay_agent(tmp_path, speed=0))
    told: list[str] = []
    for prompt in ("go", "go", "again take-a", "go"):
        _, (part,) = await played(session, prompt)
        assert isinstance(part, TextPart)
        told.append(part.text)
    assert told == ["a", "b", "a", "b"]


async def test_a_broken_recording_fails_the_turn_and_names_the_line(join: Join, tmp_path: Path) -> None:
    """The server goes on, and the next prompt plays another."""
    (tmp_path / f"bad{SUFFIX}").write_text("{}\nnonsense\n")
    record(tmp_path, "good", chunk(content="fine"))
    session = await join(replay_agent(tmp_path, speed=0))
    turn, (part,) = await played(session, "bad")
    assert turn.state == "failed"
    assert isinstance(part, ErrorPart)
    assert (part.code, part.message.partition(" is no ")[0]) == ("bad_recording", "bad.chunks.txt, line 2,")
    turn, _ = await played(session, "good")
    assert turn.state == "completed"


@pytest.mark.parametrize(
    "name",
    [
        "azure-model-router",
        "deepseek-reasoning",
        "deepseek-tool-call",
        "groq-text",
        "groq-tool-call",
        "mistral-incremental-tool-call",
        "text",
    ],
)
async def test_a_real_stream_arrives_whole(join: Join, name: str) -> None:
    """What clients see is the recording, letter for letter."""
    if not RECORDED.is_dir():
        pytest.skip("the recorded provider streams are not part of the repository")
    events: list[Event] = [
        event for line in read_recording(RECORDED / f"{name}{SUFFIX}") for event in line.events
    ]
    turn, parts = await played(await join(replay_agent(RECORDED, speed=0)), f"play {name}")
    assert turn.state == "completed"
    thought = "".join(part.text for part in parts if isinstance(part, ReasoningPart))
    said = "".join(part.text for part in parts if isinstance(part, TextPart))
    arguments = "".join(part.input_text or "" for part in parts if isinstance(part, ToolPart))
    assert thought == "".join(event.text for event in events if isinstance(event, Thought))
    assert said == "".join(event.text for event in events if isinstance(event, Said))
    assert arguments == "".join(event.arguments for event in events if isinstance(event, Called))
    assert [part.data_type for part in parts if isinstance(part, DataPart)] == [USAGE]
