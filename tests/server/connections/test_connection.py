"""Laws of calls and their limits, of answers and subscriptions, and of a connection's end."""

import msgspec
import pytest

from midstream.protocol.calls import EmptyResult, Page, PromptResult, SubscribeParams, SubscribeResult
from midstream.protocol.codec import JSON, MSGPACK, Codec
from midstream.protocol.errors import InternalError, NotFound
from midstream.protocol.frames import (
    ErrorFrame,
    GoAway,
    Hello,
    Ping,
    Result,
    Sync,
)
from midstream.protocol.limits import Limits
from midstream.server.connections.closing import CloseCode
from midstream.server.connections.effects import Abort, Close, Dispatch, Leave, Resync
from midstream.server.connections.subscription import Subscription
from tests.server.connections.client import ByHand, ending
from tests.server.connections.readers import CHANNEL, EPOCH, delta, sync

both_codecs = pytest.mark.parametrize("codec", [MSGPACK, JSON], ids=["msgpack", "json"])


# Calls


@both_codecs
def test_a_call_is_dispatched_and_its_answer_has_its_id(codec: Codec) -> None:
    """Results and errors come back under the id that the client chose."""
    client = ByHand(codec)
    for call_id in (0, 2**53 - 1):
        (effect,) = client.call(call_id, "message", session_id="s1")
        assert isinstance(effect, Dispatch)
        client.connection.expect(call_id, "s1", repeatable=True)
    client.connection.answer(0, PromptResult(state="queued", message_id="m", position=2), now=0)
    client.connection.answer(2**53 - 1, NotFound("session", "s1"), now=0)
    result, error = client.read()
    assert isinstance(result, Result)
    assert codec.decode_result("prompt", result.result) == PromptResult(
        state="queued", message_id="m", position=2
    )
    assert isinstance(error, ErrorFrame)
    assert (error.id, error.error.code) == (2**53 - 1, "not_found")


@both_codecs
def test_parts_of_an_answer_may_be_stored_msgpack(codec: Codec) -> None:
    """A page from the store reaches a client of either encoding as the same page."""
    client = ByHand(codec)
    message = {"message_id": "m", "parts": [{"type": "text", "text": "é𝄞"}]}
    page = Page(
        items=msgspec.Raw(MSGPACK.encode([message])),  # type: ignore[arg-type]  # as the store gives it
        total=1,
        has_more=False,
        include_internal=False,
        turns=[],
        epoch=EPOCH,
        version=5,
    )
    client.call(1)
    client.connection.expect(1, "s1", repeatable=True)
    client.connection.answer(1, page, now=0)
    (result,) = client.read()
    assert isinstance(result, Result)
    decode = msgspec.msgpack.decode if codec.binary else msgspec.json.decode
    assert decode(result.result)["items"] == [message]


def test_an_id_in_flight_is_not_used_again() -> None:
    """The refusal has no id, so that it is not taken for the answer to the first call."""
    client = ByHand()
    client.call(1)
    assert client.call(1) == []
    error = client.error()
    assert (error.id, error.error.code, error.error.details) == (None, "invalid", {"field": "id"})
    client.connection.answer(1, EmptyResult(), now=0)
    assert isinstance(client.call(1)[0], Dispatch)


def test_calls_in_flight_are_limited() -> None:
    """One more is refused by name, to be sent again; when one is answered, the next may come."""
    client = ByHand(limits=Limits(calls_in_flight=2))
    assert [len(client.call(number)) for number in range(3)] == [1, 1, 0]
    error = client.error()
    assert error.id == 2
    assert error.error.code == "overloaded"
    assert error.error.details == {"limit": "calls_in_flight", "maximum": 2}
    client.connection.answer(0, EmptyResult(), now=0)
    assert isinstance(client.call(2)[0], Dispatch)


def test_calls_in_a_second_are_limited() -> None:
    """A burst of a second's worth passes, and then as many as time allows."""
    client = ByHand(limits=Limits(calls_per_second=10))
    dispatched = sum(len(client.call(number)) for number in range(15))
    assert dispatched == 10
    errors = client.read()
    assert [error.error.details["limit"] for error in errors if isinstance(error, ErrorFrame)] == [
        "calls_per_second"
    ] * 5
    client.clock.advance(0.2)
    assert sum(len(client.call(number)) for number in range(20, 30)) == 2


def test_above_the_mark_an_unsubscribe_is_carried_out() -> None:
    """It makes what waits less; a client that has left would hear no refusal, and get all frames for ever."""
    client = ByHand()
    client.fill()
    (effect,) = client.call(1, "unsubscribe", session_id="s1")
    assert isinstance(effect, Dispatch)


def test_above_the_mark_calls_are_refused_as_overloaded() -> None:
    """It is retryable, and the calls pass again when the client has read."""
    client = ByHand()
    client.fill()
    assert client.call(1) == []
    error = next(frame for frame in client.read() if isinstance(frame, ErrorFrame))
    assert (error.id, error.error.code, error.error.retryable) == (1, "overloaded", True)
    assert isinstance(client.call(1)[0], Dispatch)


def test_an_answer_that_finds_no_room_is_refused_if_it_only_reads() -> None:
    """The outbox stays bounded; a call that changed something is answered in any case."""
    client = ByHand()
    for call_id, repeatable in ((1, True), (2, False)):
        client.call(call_id)
        client.connection.expect(call_id, "s1", repeatable=repeatable)
    client.fill()
    client.connection.answer(1, EmptyResult(), now=0)
    client.connection.answer(2, EmptyResult(), now=0)
    refused, answered = [frame for frame in client.read() if isinstance(frame, (ErrorFrame, Result))]
    assert isinstance(refused, ErrorFrame)
    assert (refused.id, refused.error.code) == (1, "overloaded")
    assert isinstance(answered, Result)
    assert answered.id == 2


def test_an_answer_comes_once() -> None:
    """A second one, or one to nobody, is dropped."""
    client = ByHand()
    client.call(1)
    client.connection.answer(1, EmptyResult(), now=0)
    client.connection.answer(1, EmptyResult(), now=0)
    client.connection.answer(2, EmptyResult(), now=0)
    assert len(client.read()) == 1


def test_an_answer_that_cannot_be_written_leaves_the_call_open() -> None:
    """Whoever gave it can answer with an error instead."""
    client = ByHand()
    client.call(1)

    class Broken(msgspec.Struct):
        value: object

    with pytest.raises(TypeError):
        client.connection.answer(1, Broken(object()), now=0)
    client.connection.answer(1, InternalError("failed"), now=0)
    assert client.error().id == 1


# Subscriptions


def test_what_the_session_publishes_follows_the_answer_to_subscribe() -> None:
    """The result is in the session's lane, so nothing of the session overtakes it."""
    client = ByHand()
    subscription = client.subscribed("s1", call_id=7)
    subscription.publish(delta(11))
    result, broadcast = client.read()
    assert isinstance(result, Result)
    assert result.id == 7
    assert [broadcast] == delta(11).frames(include_internal=False)


def test_two_subscribes_in_flight_make_one_subscription() -> None:
    """Attached twice on one socket: the first is let go, both calls are answered, frames come once."""
    client = ByHand()
    taken: list[Subscription | None] = []
    for call_id in (1, 2):
        client.call(call_id, "subscribe", session_id="s1")
        replaced = client.connection.subscribe(call_id, _subscribe("s1"))
        taken.append(client.connection.expect(call_id, "s1", repeatable=True))
        assert (replaced is not None) == (call_id == 2)
    first, second = taken
    assert first
    assert second
    answer = SubscribeResult(channel=CHANNEL, sync=sync(10))
    assert client.connection.answer(1, answer, now=0) == [Leave(first)]
    assert client.connection.answer(2, answer, now=0) == []
    for subscription in (first, second):
        subscription.publish(delta(11))
    assert [type(frame).__name__ for frame in client.read()] == ["Result", "Result", "Delta"]


def test_a_refused_subscribe_leaves_no_subscription() -> None:
    """An error of the session, or an answer that found no room, and the session is told to forget it."""
    client = ByHand()
    for call_id, full in ((1, False), (2, True)):
        client.call(call_id, "subscribe", session_id="s1")
        client.connection.subscribe(call_id, _subscribe("s1"))
        subscription = client.connection.expect(call_id, "s1", repeatable=True)
        assert subscription
        if full:
            client.fill()
        answer = SubscribeResult(channel=CHANNEL, sync=sync(10)) if full else NotFound("session", "s1")
        assert client.connection.answer(call_id, answer, now=0) == [Leave(subscription)]
        assert client.connection.subscriptions.get("s1") is None


def test_unsubscribe_gives_back_what_the_session_must_forget() -> None:
    """For a session that is not subscribed there is nothing to do."""
    client = ByHand()
    subscription = client.subscribed("s1")
    assert client.connection.subscriptions.end("s2") is None
    assert client.connection.subscriptions.end("s1") is subscription
    assert client.connection.subscriptions.end("s1") is None


def test_who_fell_behind_is_synced_when_the_transport_took_everything() -> None:
    """Not while the transport is paused, though the outbox is empty."""
    client = ByHand()
    subscription = client.subscribed("s1")
    client.fill()
    subscription.publish(delta(11))
    assert client.written(buffered=1, paused=True) == []
    client.outbox.take(10**9)
    assert client.written(buffered=1, paused=True) == []
    assert client.written() == [Resync(subscription)]
    subscription.bring_up(sync(12, since=10))
    assert client.read() == [Sync(CHANNEL, sync(12, since=10))]


def test_the_sync_before_the_answer_to_a_change_is_never_left_out() -> None:
    """While a change is in flight the session may bring its subscriber up above the mark."""
    client = ByHand()
    subscription = client.subscribed("s1")
    client.call(1, "prompt")
    assert client.connection.expect(1, "s1", repeatable=False) is subscription
    client.fill()
    subscription.publish(delta(11))
    subscription.bring_up(sync(12, since=10))
    client.connection.answer(1, EmptyResult(), now=0)
    assert [type(frame).__name__ for frame in client.read()[-2:]] == ["Sync", "Result"]
    assert subscription.answers_due == 0


# The end


def test_a_flood_that_is_not_read_ends_the_connection() -> None:
    """Pings, and errors, whose answers nobody reads do not pile up without end."""
    for flood in (["ping", 2**40], ["shout", 1]):
        client = ByHand()
        for _ in range(100_000):
            effects = client.send(flood)
            if effects:
                break
        else:
            pytest.fail("the flood went on")
        assert isinstance(effects[0], Abort)
        assert effects[0].code == CloseCode.OVERLOADED
        assert client.outbox.size < 300_000


def test_when_it_ends_every_session_is_told() -> None:
    """Whoever was subscribed to is let go, once, however the end came."""
    client = ByHand()
    subscriptions = [client.subscribed(f"s{number}") for number in range(3)]
    effects = client.connection.close(CloseCode.GOING_AWAY, "stop")
    assert effects == [Close(CloseCode.GOING_AWAY, "stop"), *map(Leave, subscriptions)]
    assert client.connection.lost() == []
    assert client.connection.close(CloseCode.GOING_AWAY, "stop") == []

    client = ByHand()
    subscription = client.subscribed("s1")
    assert client.connection.lost() == [Leave(subscription)]
    assert client.connection.next_deadline(client.clock.now()) is None


def test_an_answer_after_the_end_is_dropped_and_its_subscription_let_go() -> None:
    """The session answers a subscribe whose client is gone: it must not keep the subscriber."""
    client = ByHand()
    client.call(1, "subscribe", session_id="s1")
    client.connection.subscribe(1, _subscribe("s1"))
    subscription = client.connection.expect(1, "s1", repeatable=True)
    assert subscription
    client.connection.lost()
    answer = SubscribeResult(channel=CHANNEL, sync=sync(10))
    assert client.connection.answer(1, answer, now=0) == [Leave(subscription)]
    assert client.outbox.take(10**9) == []


def test_draining_says_when_to_come_back_and_refuses_newcomers() -> None:
    """`goaway` goes to those that are there; a later hello is closed with a code that comes back."""
    client = ByHand()
    client.connection.go_away("draining", 750)
    assert client.read() == [GoAway("draining", 750)]
    late = ByHand(hello=False)
    late.connection.go_away("draining", 750)
    assert late.outbox.size == 0
    end = ending(late.send(Hello(1, None, {})))
    assert end.code == CloseCode.GOING_AWAY
    assert end.code < 4500


def test_after_the_end_nothing_is_taken() -> None:
    """Messages that come while the connection closes are ignored."""
    client = ByHand()
    client.connection.close(CloseCode.GOING_AWAY, "stop")
    assert client.call(1) == []
    assert client.send(Ping(1)) == []
    assert client.outbox.size == 0


def _subscribe(session_id: str) -> SubscribeParams:
    return SubscribeParams(session_id=session_id)
