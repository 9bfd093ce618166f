"""What is composed for Gemini: legal whatever happened, and true to the conversation."""

from __future__ import annotations

from typing import Any

from google.genai import types
from hypothesis import given
from msgspec import UNSET, structs

from midstream.adapters.compose import compose
from midstream.adapters.compose.google_parts import NO_SIGNATURE
from midstream.protocol.model import FilePart, Message, ProviderMetadata, ReasoningPart, TextPart, ToolPart
from tests.adapters.compose.histories import histories, said

KINDS = {
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
}  # fmt: skip


def contents_of(history: list[Message]) -> list[dict[str, Any]]:
    """Return the contents that are composed, of which the library's types have taken each."""
    contents: list[dict[str, Any]] = [dict(content) for content in compose(history, "google")]
    for content in contents:
        read = types.Content.model_validate(content)
        assert len(read.parts or []) == len(content["parts"])
    return contents


@given(histories())
def test_every_history_becomes_legal_contents(history: list[Message]) -> None:
    """The library's types take them, and as many answers as calls stand directly behind a model's content."""
    contents = contents_of(history)
    waiting: list[tuple[str, str | None]] = []
    before = "model"
    for number, content in enumerate(contents):
        role, parts = content["role"], content["parts"]
        assert parts
        assert number or role == "user"
        assert (before, role) != ("model", "model") or not number
        answers = [_key(part["functionResponse"]) for part in parts if "functionResponse" in part]
        assert answers == waiting
        assert len(answers) in {0, len(parts)}
        waiting = [_key(part["functionCall"]) for part in parts if "functionCall" in part]
        assert role == "model" or not waiting
        before = role
    assert not waiting


def _key(named: dict[str, Any]) -> tuple[str, str | None]:
    return named["name"], named.get("id")


@given(histories())
def test_each_part_is_of_one_kind_and_the_first_call_of_a_step_is_signed(history: list[Message]) -> None:
    """Gemini refuses a function call that stands first without a signature; code has its result behind it."""
    for content in contents_of(history):
        parts = content["parts"]
        assert all(len(KINDS & part.keys()) == 1 for part in parts)
        calls = [part for part in parts if "functionCall" in part]
        assert not calls or calls[0]["thoughtSignature"]
        for one, two in (("executableCode", "codeExecutionResult"), ("toolCall", "toolResponse")):
            places = [number for number, part in enumerate(parts) if one in part]
            assert all(two in parts[number + 1] for number in places)
            assert len(places) == sum(two in part for part in parts)


def test_a_signature_goes_back_in_the_part_that_it_came_in() -> None:
    """In the same part, in an empty one behind it, or with its call; thinking without one stays here."""
    signed: ProviderMetadata = {"google": {"thought_signature": "c2ln"}}
    behind: ProviderMetadata = {"google": {"thought_signature": "c2ln", "signature_follows": True}}
    parts = (
        ReasoningPart(text="Unsigned.", state="done"),
        ReasoningPart(text="Signed.", state="done", provider_metadata=signed),
        TextPart(text="One.", state="done", provider_metadata=signed),
        TextPart(text="Two.", state="done", provider_metadata=behind),
        ToolPart(
            tool_call_id="c",
            tool_name="f",
            state="completed",
            input={"a": 1},
            output="x",
            call_provider_metadata={"google": {"id": "c", "thought_signature": "c2ln"}},
        ),
    )
    _, model, answer = contents_of([said("user", TextPart(text="Go.")), said("agent", *parts)])
    assert model["parts"] == [
        {"text": "Signed.", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "One.", "thoughtSignature": "c2ln"},
        {"text": "Two."},
        {"text": "", "thoughtSignature": "c2ln"},
        {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    ]
    assert answer["parts"] == [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}]


def test_a_call_of_another_provider_is_let_through_by_the_documented_word() -> None:
    """Its failure is told under the key that Gemini reads failures from."""
    call = ToolPart(tool_call_id="call_1", tool_name="9lives", state="failed", input=[1], error="No.")
    _, model, answer = contents_of([said("user", TextPart(text="Go.")), said("agent", call)])
    named = {"name": "_9lives"}
    assert model["parts"] == [
        {"functionCall": {**named, "args": {"input": [1]}}, "thoughtSignature": NO_SIGNATURE}
    ]
    assert answer["parts"] == [{"functionResponse": {**named, "response": {"error": "No."}}}]


def test_an_output_that_would_be_read_as_a_reference_goes_as_text() -> None:
    """Gemini reads ``$ref`` anywhere in a response as the name of a part."""
    call = ToolPart(
        tool_call_id="c", tool_name="f", state="completed", input={}, output={"a": [{"$ref": "#"}]}
    )
    (_, _, answer) = contents_of([said("user", TextPart(text="Go.")), said("agent", call)])
    assert answer["parts"][0]["functionResponse"]["response"] == {"output": '{"a":[{"$ref":"#"}]}'}


def test_files_go_in_as_bytes_or_by_their_address_and_come_back_only_if_gemini_made_them() -> None:
    """A picture of another model's is not one that Gemini said."""
    url = "data:image/png;base64,AAEC"
    mine: ProviderMetadata = {"google": {"type": "inlineData", "thought_signature": "c2ln"}}
    sent = FilePart(url=url, media_type="image/png")
    film = FilePart(url="https://h/a.mp4", media_type="video/mp4")
    made = FilePart(url=url, media_type="image/png", provider_metadata=mine)
    user, model = contents_of([said("user", sent, film), said("agent", made, sent)])
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAEC"}}
    assert user["parts"] == [picture, {"fileData": {"mimeType": "video/mp4", "fileUri": "https://h/a.mp4"}}]
    assert model["parts"] == [{**picture, "thoughtSignature": "c2ln"}]


def test_tools_of_geminis_own_go_back_with_their_results_and_signatures() -> None:
    """Only where both are there; a kind that Gemini refuses stays here."""
    code = ToolPart(
        tool_call_id="c",
        tool_name="code_execution",
        state="completed",
        input={"language": "PYTHON", "code": "1"},
        output={"outcome": "OUTCOME_OK", "output": "1"},
        call_provider_metadata={"google": {"type": "executableCode", "thought_signature": "c2ln"}},
        provider_executed=True,
    )
    search = ToolPart(
        tool_call_id="t",
        tool_name="google_search_web",
        state="completed",
        input={"q": "x"},
        output={"r": "y"},
        call_provider_metadata={"google": {"type": "toolCall", "id": "t"}},
        result_provider_metadata={"google": {"thought_signature": "c2ln"}},
        provider_executed=True,
    )
    cut = structs.replace(search, state="failed", output=UNSET, error="turn_stopped")
    refused = structs.replace(search, tool_name="media_processing")
    _, model = contents_of([said("user", TextPart(text="Go.")), said("agent", code, search, cut, refused)])
    named = {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}
    assert model["parts"] == [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {**named, "args": {"q": "x"}}},
        {"toolResponse": {**named, "response": {"r": "y"}}, "thoughtSignature": "c2ln"},
    ]
