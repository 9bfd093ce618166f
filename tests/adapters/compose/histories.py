"""Canonical histories of every kind, for what composes them: stopped anywhere, of several providers mixed."""

from __future__ import annotations

import base64

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType, structs

from midstream.protocol.model import (
    ApprovalResponse,
    ContextPart,
    DataPart,
    FilePart,
    InteractionPart,
    InteractionRequest,
    Message,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolPart,
    ToolState,
)
from midstream.protocol.values import Value
from tests import strategies
from tests.adapters.compose.provider_calls import AGENT_CALLS, OWN_CALLS

HIDDEN = "only-for-the-user-interface"
"""What stands in every ``data`` part of these histories."""

texts = st.sampled_from(
    ["", " ", "\n", "Hello.", "a < b & c", "<b>bold</b>", "Ends with a space "]
) | st.text(max_size=6)
call_ids = st.sampled_from(["call_1", "call_2", "toolu_1", "functions.search:0", "x" * 70, "é"])
"""Few, so that ids come again; some that no provider takes, or not every one."""
tool_names = st.sampled_from(["search", "delete_file", "9lives", "mcp/zip.create", "x" * 150, "web_search"])
media_types = st.sampled_from(
    [
        "image/png", "image/jpg", "image/svg+xml", "image/heic", "application/pdf", "text/plain", "text/csv",
        "application/json", "audio/mpeg", "video/mp4", "application/zip", "IMAGE/PNG; q=1", "odd",
    ]
)  # fmt: skip
contents = st.binary(max_size=5)


@st.composite
def data_urls(draw: st.DrawFn) -> str:
    """A data URL: in base64, percent-encoded, or broken."""
    content = draw(contents)
    return draw(
        st.sampled_from(
            [
                f"data:image/png;base64,{base64.b64encode(content).decode()}",
                f"data:text/plain,{''.join(f'%{byte:02x}' for byte in content)}",
                "data:image/png;base64,%%%",
                "data:image/png",
            ]
        )
    )


urls = data_urls() | st.sampled_from(
    ["https://example.com/a.png", "http://h/x", "file:///etc/passwd", "ftp:x"]
)


@st.composite
def metadata(draw: st.DrawFn) -> dict[str, dict[str, Value]] | UnsetType:
    """What any provider may have said with a text, a reasoning or a file, together or not."""
    known: list[dict[str, dict[str, Value]]] = [
        {"anthropic": {"signature": "sig"}},
        {"anthropic": {"redacted_data": "opaque"}},
        {"anthropic": {"signature": 7, "citations": "none"}},
        {"anthropic": {"citations": [CITATION, {"type": "page_location"}, 3]}},
        {"openai": {"item_id": "rs_1", "encrypted_content": "gAAA"}},
        {"openai": {"item_id": "rs_2"}},
        {"openai": {"item_id": "rs_3", "type": "compaction", "encrypted_content": "gAAA"}},
        {"openai": {"item_id": "ig_1"}},
        {"openai": {"phase": "commentary"}},
        {"openai-chat": {"field": "reasoning_content"}},
        {"openai-chat": {"field": "thinking"}},
        {"google": {"thought_signature": "c2ln"}},
        {"google": {"thought_signature": "c2ln", "signature_follows": True}},
        {"pydantic-ai": {"provider_name": "openai", "id": "rs_1", "signature": "gAAA"}},
        {"pydantic-ai": {"provider_name": "anthropic", "part_kind": "compaction"}},
        {"pydantic-ai": {"provider_name": 7, "provider_details": [], "signature": {}}},
        {"langchain": {"id": "rs_1", "extras": {"signature": "sig"}, "model_provider": "anthropic"}},
        {"langchain": {"field": "reasoning_content"}},
        {"langchain": {"extras": "none", "id": 7, "additional_kwargs": 1}},
        {"somebody": {"else": [1]}},
    ]
    chosen = draw(st.lists(st.sampled_from(known), max_size=3))
    return {name: own for one in chosen for name, own in one.items()} or UNSET


CITATION: Value = {
    "type": "web_search_result_location",
    "cited_text": "so it is",
    "encrypted_index": "Eo8B",
    "title": None,
    "url": "https://example.com/",
    "added_later": 1,
}


@st.composite
def own_calls(draw: st.DrawFn) -> ToolPart:
    """A call that a provider ran itself, whole or cut at any place."""
    known = draw(st.sampled_from(OWN_CALLS))
    state = draw(states)
    return ToolPart(
        tool_call_id=draw(st.sampled_from(["srvtoolu_1", "srvtoolu_2", "ws_1"])),
        tool_name=known.name,
        state=state,
        input=UNSET if state == "input-streaming" else draw(st.sampled_from([known.input, UNSET])),
        output=known.output if state == "completed" else UNSET,
        error=draw(st.sampled_from(["max_uses_exceeded", "It broke."])) if state == "failed" else UNSET,
        call_provider_metadata={known.provider: known.own},
        result_provider_metadata={"google": {"thought_signature": "c2ln"}},
        provider_executed=True,
    )


states: st.SearchStrategy[ToolState] = st.sampled_from(
    ["input-streaming", "ready", "waiting-user", "running", "completed", "failed"]
)


@st.composite
def agent_calls(draw: st.DrawFn) -> ToolPart:
    """A call that the agent ran, or would have run: in any state, with whatever came of it."""
    known = draw(st.none() | st.sampled_from(AGENT_CALLS))
    state = draw(states)
    input, output = draw(strategies.maybe(inputs)), draw(strategies.maybe(outputs))
    if known is not None and draw(st.booleans()):
        input, output = known.input, known.output
    return ToolPart(
        tool_call_id=draw(call_ids),
        tool_name=draw(tool_names) if known is None else known.name,
        state=state,
        input_text=draw(strategies.maybe(st.just('{"a":'))),
        input=UNSET if state == "input-streaming" else input,
        raw_input=draw(strategies.maybe(st.just('{"a":'))) if state == "failed" else UNSET,
        output=output if state in {"running", "completed"} else UNSET,
        error=draw(texts) if state == "failed" else UNSET,
        call_provider_metadata=UNSET if known is None else {known.provider: known.own},
    )


INPUTS: list[Value] = [
    [1], "text", None,
    {"type": "exec", "command": ["ls"], "env": {}},
    {"commands": ["ls"]},
    {"type": "create_file", "diff": "+a", "path": "a"},
    {"type": "delete_file"},
]  # fmt: skip
OUTPUTS: list[Value] = [
    "", "text", {"$ref": "#/a"}, [{"deep": {"$ref": 1}}], {"error": "of its own"},
    [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
]  # fmt: skip
inputs: st.SearchStrategy[Value] = strategies.maps | st.sampled_from(INPUTS)
outputs: st.SearchStrategy[Value] = strategies.values | st.sampled_from(OUTPUTS)


@st.composite
def decisions(draw: st.DrawFn) -> InteractionPart:
    """An approval that a person gave or refused, of a call that may be there."""
    decision = draw(st.sampled_from(["approved", "denied"]))
    return InteractionPart(
        interaction_id="i",
        interaction_type="approval",
        status="resolved",
        request=InteractionRequest(title="May it?"),
        response=ApprovalResponse(
            decision="approved" if decision == "approved" else "denied",
            reason=draw(strategies.maybe(st.sampled_from(["", "Too risky."]))),
        ),
        resolved_at=1,
        resolved_by="ann",
        tool_call_id=draw(call_ids | st.just("ws_1")),
    )


files = st.builds(
    FilePart,
    url=urls,
    media_type=media_types,
    filename=strategies.maybe(st.sampled_from(["a.png", "", "ü.pdf"])),
    provider_metadata=metadata(),
)
agent_parts: st.SearchStrategy[Part] = (
    st.builds(
        TextPart, text=texts, state=st.sampled_from(["streaming", "done"]), provider_metadata=metadata()
    )
    | st.builds(
        ReasoningPart, text=texts, state=st.sampled_from(["streaming", "done"]), provider_metadata=metadata()
    )
    | agent_calls()
    | own_calls()
    | decisions()
    | files
    | st.builds(DataPart, data_type=st.just("usage"), data=st.just(HIDDEN))
    | strategies.agent_parts
)


@st.composite
def thoughts(draw: st.DrawFn) -> list[Part]:
    """A reasoning that can go back, and what it led to: as providers send them, where nothing cuts them."""
    provider, own = draw(st.sampled_from(RETURNABLE))
    first = ReasoningPart(text=draw(texts), state="done", provider_metadata={provider: own})
    known = draw(st.sampled_from([call for call in OWN_CALLS if call.provider == provider]))
    whole = ToolPart(
        tool_call_id=f"srvtoolu_{draw(st.integers(0, 2))}",
        tool_name=known.name,
        state="completed",
        input=known.input,
        output=known.output,
        call_provider_metadata={provider: known.own},
        provider_executed=True,
    )
    led: Part = draw(st.sampled_from([whole]) | agent_calls() | st.builds(TextPart, text=texts))
    return [first, led]


RETURNABLE: list[tuple[str, dict[str, Value]]] = [
    ("anthropic", {"signature": "sig"}),
    ("anthropic", {"redacted_data": "opaque"}),
    ("google", {"thought_signature": "c2ln"}),
    ("openai", {"item_id": "rs_1", "encrypted_content": "gAAA"}),
]
user_parts: st.SearchStrategy[Part] = (
    st.builds(TextPart, text=texts)
    | st.builds(ContextPart, tag=st.just("page"), context=texts)
    | files
    | st.builds(DataPart, data_type=st.just("form"), data=st.just(HIDDEN))
)
steps = st.sampled_from([UNSET, "s1", "s1", "s2", "s3"])


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Any history: it may begin with either role, and have messages that say nothing to a model."""
    roles: list[Role] = draw(st.lists(st.sampled_from(["user", "agent"]), max_size=5))
    return [_message(number, role, draw) for number, role in enumerate(roles, 1)]


def _message(number: int, role: Role, draw: st.DrawFn) -> Message:
    one = st.builds(list[Part], st.tuples(user_parts if role == "user" else agent_parts))
    phrases = draw(st.lists(one if role == "user" else one | thoughts(), max_size=5))
    stepped = [(phrase, draw(steps) if role == "agent" else UNSET) for phrase in phrases]
    drawn = [(part, step_id) for phrase, step_id in stepped for part in phrase]
    parts = [
        structs.replace(part, part_id=f"p{place}", sequence=place, step_id=step_id)
        for place, (part, step_id) in enumerate(drawn, 1)
    ]
    return Message(
        message_id=f"m{number}",
        session_id="s",
        sequence=number,
        revision=number,
        role=role,
        visibility="internal" if role == "user" and draw(st.booleans()) else "visible",
        created_at=1,
        updated_at=1,
        state=UNSET if role == "user" else "done",
        parts=parts,
    )


def said(role: Role, *parts: Part, sequence: int = 1) -> Message:
    """Return a message with these parts, numbered as they stand."""
    return Message(
        message_id=f"m{sequence}",
        session_id="s",
        sequence=sequence,
        revision=sequence,
        role=role,
        visibility="visible",
        created_at=1,
        updated_at=1,
        state=UNSET if role == "user" else "done",
        parts=[
            structs.replace(part, part_id=f"p{place}", sequence=place) for place, part in enumerate(parts, 1)
        ],
    )


def only(messages: list[Message], provider: str) -> list[Message]:
    """Return the messages with what this provider said of its own, and without what any other did."""
    return [
        structs.replace(message, parts=[_only(part, provider) for part in message.parts])
        for message in messages
    ]


def _only(part: Part, provider: str) -> Part:
    names = ("provider_metadata", "call_provider_metadata", "result_provider_metadata")
    kept: dict[str, object] = {}
    for name in names:
        given = getattr(part, name, UNSET)
        if given is not UNSET:
            own = {key: value for key, value in given.items() if key == provider}
            kept[name] = own or UNSET
    return structs.replace(part, **kept)
