"""Laws of the error tree."""

from __future__ import annotations

import msgspec
import pytest

from midstream.protocol import errors
from midstream.protocol.errors import ErrorInfo, InvalidRequest, MidstreamError, Unavailable, error_from_info

EXAMPLES: list[MidstreamError] = [
    errors.InternalError("The server failed."),
    InvalidRequest("parts[0].text", "Expected `str`, got `int`"),
    errors.MalformedFrame("it ends in the middle of a value"),
    errors.UnknownFrame("shout"),
    errors.UnknownMethod("explode"),
    errors.NotFound("session", "s"),
    errors.AlreadyExists("s"),
    errors.Forbidden("write", "session_id"),
    errors.Refused("queue_full", "The queue is full. Wait for a turn to end."),
    errors.IdempotencyConflict("message_id", "m"),
    errors.InteractionClosed("i", "resolved", {"kind": "approval", "decision": "denied"}, "local"),
    errors.IllegalTransition("tool", "c", "completed", "running"),
    errors.LimitExceeded("frame_bytes", 10, 12),
    errors.Overloaded("Too much at once. Wait and send it again."),
    Unavailable("The storage failed. Try again."),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: error.code)
def test_an_error_comes_back_from_the_wire_as_itself(error: MidstreamError) -> None:
    """Type, code, text and details; so a client can catch it by its class."""
    wire = msgspec.json.decode(msgspec.json.encode(error.info()), type=ErrorInfo)
    again = error_from_info(wire)
    assert type(again) is type(error)
    assert (again.code, again.retryable, str(again)) == (error.code, error.retryable, str(error))
    assert again.details == error.details


def test_codes_are_unique_and_every_class_has_an_example() -> None:
    """A code means one thing."""
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MidstreamError)
    ]
    assert {type(error) for error in EXAMPLES} == {kind for kind in kinds if kind is not MidstreamError}
    assert len({error.code for error in EXAMPLES}) == len(EXAMPLES)


def test_an_unknown_code_keeps_its_name_and_whether_to_retry() -> None:
    """A newer server may have more codes."""
    error = error_from_info(ErrorInfo(code="moon_phase", message="Not tonight.", retryable=True))
    assert type(error) is MidstreamError
    assert (error.code, error.retryable) == ("moon_phase", True)
    assert (MidstreamError.code, MidstreamError.retryable) == ("internal", False)


def test_a_servers_word_on_retrying_counts() -> None:
    """It may know better than the class."""
    error = error_from_info(ErrorInfo(code="unavailable", message="Gone for good.", retryable=False))
    assert isinstance(error, Unavailable)
    assert not error.retryable
    assert Unavailable.retryable


def test_an_invalid_request_names_its_field() -> None:
    """For programs in the details, for people in the text."""
    error = InvalidRequest("limit", "Expected `int` >= 1")
    assert error.field == "limit"
    assert str(error) == "limit: Expected `int` >= 1"
    assert InvalidRequest("", "is no frame").field == ""


def test_an_invalid_request_does_not_repeat_all_of_what_it_refuses() -> None:
    """A value may be as long as a frame, and an error is kept, and sent where only small frames are."""
    error = InvalidRequest("x" * 10_000, "y" * 10_000)
    assert len(str(error)) < 2_100
    assert str(error).startswith(f"{error.field}: yyy")
