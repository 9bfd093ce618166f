"""Laws of the limits that the types of the calls cannot hold."""

import msgspec
import pytest

from midstream.protocol.calls import (
    CreateParams,
    ForkParams,
    ListParams,
    MessageParams,
    MessagesParams,
    PromptParams,
    RespondParams,
    SessionParams,
    SignalParams,
    StopParams,
    SubscribeParams,
    UpdateParams,
    VerifyParams,
)
from midstream.protocol.errors import InvalidRequest, LimitExceeded
from midstream.protocol.limits import Limits
from midstream.protocol.model import ApprovalResponse, ContextPart, DataPart, FilePart, TextPart, UserPart
from midstream.server.connections.bounds import check

LONG = "é" * 65  # 65 characters, 130 bytes
YES = ApprovalResponse(decision="approved")


def prompt(*parts: UserPart, message_id: str = "m") -> PromptParams:
    """Return the params of a prompt."""
    return PromptParams(session_id="s", message_id=message_id, parts=list(parts))


def text(content: str, **fields: object) -> TextPart:
    """Return a text part as a client sends it."""
    return msgspec.convert({"type": "text", "text": content, **fields}, TextPart)


@pytest.mark.parametrize(
    ("params", "limit", "maximum", "actual"),
    [
        (SessionParams(session_id=LONG), "session_id_bytes", 128, 130),
        (MessageParams(session_id="s", message_id=LONG), "session_id_bytes", 128, 130),
        (StopParams(session_id="s", turn_id=LONG), "session_id_bytes", 128, 130),
        (
            RespondParams(session_id="s", interaction_id=LONG, response=YES),
            "session_id_bytes",
            128,
            130,
        ),
        (CreateParams(key=LONG), "session_id_bytes", 128, 130),
        (ForkParams(session_id="s", new_session_id=LONG), "session_id_bytes", 128, 130),
        (prompt(text("x"), message_id=LONG), "session_id_bytes", 128, 130),
        (prompt(text("x", part_id=LONG)), "session_id_bytes", 128, 130),
        (CreateParams(title="é" * 513), "title_bytes", 1024, 1026),
        (UpdateParams(session_id="s", title="x" * 1025), "title_bytes", 1024, 1025),
        (ForkParams(session_id="s", title="x" * 1025), "title_bytes", 1024, 1025),
        (CreateParams(metadata={"a": "x" * 16_384}), "metadata_bytes", 16_384, 16_390),
        (UpdateParams(session_id="s", metadata={"a": "x" * 16_384}), "metadata_bytes", 16_384, 16_390),
        (SignalParams(session_id="s", name="typing", data="x" * 4_096), "signal_bytes", 4_096, 4_099),
        (VerifyParams(session_id="s", from_sequence=5, to_sequence=205), "page_messages", 200, 201),
    ],
)
def test_a_limit_is_refused_by_name(params: msgspec.Struct, limit: str, maximum: int, actual: int) -> None:
    """The error says which limit, what it is, and what was sent."""
    with pytest.raises(LimitExceeded) as caught:
        check(params, Limits())
    assert caught.value.details == {"limit": limit, "maximum": maximum, "actual": actual}


@pytest.mark.parametrize(
    "params",
    [
        SessionParams(session_id="é" * 64),
        CreateParams(title="x" * 1024, metadata={"a": "x" * 16_000}),
        UpdateParams(session_id="s", title=None),
        SignalParams(session_id="s", name="typing", data="x" * 4_000),
        VerifyParams(session_id="s", from_sequence=5, to_sequence=204),
        VerifyParams(session_id="s", from_sequence=5, to_sequence=5),
        SubscribeParams(session_id="s", limit=200),
        SubscribeParams(session_id="s"),
        ListParams(limit=200),
        prompt(text("x"), ContextPart(tag="file_path", context="a.py"), DataPart(data_type="d", data=None)),
        prompt(FilePart(url="data:,x", media_type="text/plain")),
    ],
)
def test_what_is_within_the_limits_passes(params: msgspec.Struct) -> None:
    """The limit itself is still allowed."""
    check(params, Limits())


@pytest.mark.parametrize(
    "params",
    [
        SubscribeParams(session_id="s", limit=51),
        MessagesParams(session_id="s", limit=51),
        ListParams(limit=51),
        VerifyParams(session_id="s", from_sequence=1, to_sequence=51),
    ],
)
def test_a_server_may_allow_smaller_pages(params: msgspec.Struct) -> None:
    """The configured limit counts where it is below that of the types."""
    with pytest.raises(LimitExceeded) as caught:
        check(params, Limits(page_messages=50))
    assert caught.value.details["limit"] == "page_messages"


def test_a_verify_goes_upwards() -> None:
    """A range that ends before it begins is invalid."""
    with pytest.raises(InvalidRequest) as caught:
        check(VerifyParams(session_id="s", from_sequence=6, to_sequence=5), Limits())
    assert caught.value.field == "to_sequence"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (prompt(text("x", state="done")), "parts[0].state"),
        (prompt(text("x"), text("y", step_id="1")), "parts[1].step_id"),
        (prompt(ContextPart(tag="No Tag", context="x")), "parts[0].tag"),
        (prompt(text("a", part_id="p"), text("b", part_id="p")), "parts[1].part_id"),
        (prompt(text("")), "parts"),
        (prompt(text("  \n")), "parts"),
    ],
)
def test_a_prompt_has_the_parts_of_a_user_and_some_content(params: PromptParams, field: str) -> None:
    """The error names the part and the field."""
    with pytest.raises(InvalidRequest) as caught:
        check(params, Limits())
    assert caught.value.field == field
