"""Laws of the way from a call to the session that carries it out."""

import pytest

from midstream.protocol.calls import PARAMS, EmptyResult, PromptParams, SubscribeParams
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import Overloaded
from midstream.protocol.frames import Result
from midstream.protocol.limits import Limits
from midstream.server.connections.calls import ROUTES
from midstream.server.connections.subscription import State, Subscription
from tests.server.connections.caller import Caller
from tests.server.connections.readers import Frame

both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


def test_every_method_has_a_route() -> None:
    """What the protocol knows is what is routed."""
    assert ROUTES.keys() == PARAMS.keys()


@both_codecs
def test_a_call_reaches_its_session_with_params_caller_and_content_as_sent(codec: Codec) -> None:
    """The content hash is taken over what was sent, so that is kept beside the decoded params."""
    caller = Caller(codec)
    parts: list[Frame | dict[str, object]] = [{"type": "text", "text": "é𝄞", "unknown": [1, 2.5, None]}]
    caller.make(1, "prompt", session_id="s1", message_id="m", parts=parts)
    ((session_id, command),) = caller.registry.posted
    assert session_id == "s1"
    assert command.method == "prompt"
    assert isinstance(command.params, PromptParams)
    assert command.as_sent == {"session_id": "s1", "message_id": "m", "parts": parts}
    assert command.caller.subject == "local"
    assert command.caller.connection_id == "connection_1"
    assert command.subscriber is None
    command.reply(EmptyResult())
    assert isinstance(caller.read()[0], Result)


@pytest.mark.parametrize("method", ["sessions.create", "sessions.list", "sessions.fork"])
def test_calls_about_no_loaded_session_go_to_the_registry(method: str) -> None:
    """They have no mailbox of their own."""
    caller = Caller()
    caller.make(1, method, session_id="s1")
    ((session_id, command),) = caller.registry.posted
    assert session_id == ""
    command.reply(Overloaded("busy"))
    assert caller.error().error.code == "overloaded"


def test_a_call_knows_the_subscription_of_its_connection() -> None:
    """So the session can bring it up before the answer."""
    caller = Caller()
    caller.make(1, "subscribe", session_id="s1", limit=5)
    caller.make(2, "turn", session_id="s1")
    caller.make(3, "turn", session_id="s2")
    subscribe, turn, other = (command for _, command in caller.registry.posted)
    assert isinstance(subscribe.params, SubscribeParams)
    assert isinstance(subscribe.subscriber, Subscription)
    assert subscribe.subscriber.limit == 5
    assert turn.subscriber is subscribe.subscriber
    assert other.subscriber is None


def test_a_second_subscribe_lets_the_first_go_before_it_is_posted() -> None:
    """From then on no frame of the first can come."""
    caller = Caller()
    caller.make(1, "subscribe", session_id="s1")
    caller.make(2, "subscribe", session_id="s1")
    first, second = (command.subscriber for _, command in caller.registry.posted)
    assert caller.registry.left == [("s1", first)]
    assert isinstance(first, Subscription)
    assert first.state is State.CLOSED
    assert caller.connection.subscriptions.get("s1") is second


def test_unsubscribe_is_done_at_once_and_harmless_when_repeated() -> None:
    """The session is told, the caller is answered, nothing is posted."""
    caller = Caller()
    caller.make(1, "subscribe", session_id="s1")
    subscriber = caller.registry.posted[0][1].subscriber
    for call_id in (2, 3):
        caller.make(call_id, "unsubscribe", session_id="s1")
        (result,) = caller.read()
        assert isinstance(result, Result)
        assert result.id == call_id
    assert caller.registry.left == [("s1", subscriber)]
    assert len(caller.registry.posted) == 1


@pytest.mark.parametrize("method", ["shout", "agent.run", "sessions.search", "login", ""])
def test_an_unknown_method_is_refused(method: str) -> None:
    """The connection lives."""
    error = Caller().refusal(method)
    assert (error.error.code, error.error.details) == ("unknown_method", {"method": method})


INVALID: list[tuple[str, dict[str, object], str]] = [
    ("messages", {"session_id": "s", "limit": 0}, "limit"),
    ("messages", {"session_id": "s", "limit": 201}, "limit"),
    ("messages", {"session_id": "s", "before_sequence": -1}, "before_sequence"),
    ("messages", {}, "session_id"),
    ("message", {"session_id": 5, "message_id": "m"}, "session_id"),
    ("turn", {"session_id": ""}, "session_id"),
    ("prompt", {"session_id": "s", "message_id": "m", "parts": []}, "parts"),
    ("prompt", {"session_id": "s", "message_id": "m"}, "parts"),
    ("signal", {"session_id": "s", "name": "n", "data": 2**53}, "data"),
    ("verify", {"session_id": "s", "from_sequence": 0, "to_sequence": 1}, "from_sequence"),
    ("subscribe", {"session_id": "s", "pace_ms": 5}, "pace_ms"),
]


@pytest.mark.parametrize(("method", "params", "field"), INVALID)
@both_codecs
def test_wrong_params_are_refused_with_the_fields_name(
    codec: Codec, method: str, params: dict[str, object], field: str
) -> None:
    """Nothing reaches a session."""
    error = Caller(codec).refusal(method, **params)
    assert (error.error.code, error.error.details) == ("invalid", {"field": field})


def test_a_value_that_is_not_a_number_is_refused() -> None:
    """JSON cannot say it; msgpack can, and it must not get into the store."""
    error = Caller().refusal("signal", session_id="s", name="n", data={"x": float("nan")})
    assert error.error.details == {"field": "data.x"}


@both_codecs
def test_65_levels_of_nesting_are_refused_and_64_pass(codec: Codec) -> None:
    """The frame and the params are two of the levels."""
    for depth, passes in ((62, True), (63, False)):
        value: object = 1
        for _ in range(depth):
            value = [value]
        caller = Caller(codec)
        caller.make(1, "signal", session_id="s", name="n", data=value)
        assert bool(caller.registry.posted) == passes
        if not passes:
            assert caller.error().error.code == "invalid"


def test_internal_messages_need_the_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it they are not there to ask for; the same holds for writing."""
    caller = Caller()
    reader = type(caller.connection.caller)(
        subject="local", connection_id="connection_1", scopes=frozenset({"read"})
    )
    monkeypatch.setattr(type(caller.connection), "caller", reader)
    for method in ("subscribe", "messages"):
        error = caller.refusal(method, session_id="s", include_internal=True)
        assert (error.error.code, error.error.details) == ("forbidden", {"field": "include_internal"})
    error = caller.refusal("stop", session_id="s")
    assert (error.error.code, error.error.details) == ("forbidden", {"field": "stop"})


def test_too_many_subscriptions_are_refused_by_name() -> None:
    """The subscriptions that are there stay."""
    caller = Caller(limits=Limits(subscriptions=1))
    caller.make(1, "subscribe", session_id="s1")
    caller.make(2, "subscribe", session_id="s2")
    assert caller.error().error.details["limit"] == "subscriptions"
    assert caller.registry.left == []


def test_a_full_mailbox_is_the_calls_error() -> None:
    """What the registry refuses is answered, and a subscribe leaves nothing behind."""
    caller = Caller()
    caller.registry.refusal = Overloaded("The session has too much to do.")
    caller.make(1, "subscribe", session_id="s1")
    assert caller.error().error.code == "overloaded"
    assert caller.connection.subscriptions.get("s1") is None


def test_a_failure_of_the_server_is_an_internal_error_and_the_connection_lives() -> None:
    """The client learns that something failed, and nothing of what."""
    caller = Caller()
    caller.registry.refusal = RuntimeError("the secret of the house")
    caller.make(1, "stop", session_id="s1")
    error = caller.error()
    assert error.error.code == "internal"
    assert "secret" not in error.error.message
    assert caller.connection.is_open
