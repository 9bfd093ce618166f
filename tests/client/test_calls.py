"""No call is forgotten, and none is repeated that could do harm."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from midstream.client.calls import Answer, CallTable, PendingCall
from midstream.protocol.calls import SessionParams

PARAMS = SessionParams(session_id="s")


def ignore(answer: Answer) -> None:
    """Fail: these tests answer no call."""
    raise AssertionError(answer)


def add(table: CallTable, *, repeatable: bool = True, urgent: bool = False) -> PendingCall:
    """Make a call."""
    return table.add("sessions.get", PARAMS, ignore, repeatable=repeatable, urgent=urgent)


def taken(table: CallTable, limit: int = 64) -> list[PendingCall]:
    """Send all that may be sent."""
    calls: list[PendingCall] = []
    while (call := table.take(limit)) is not None:
        calls.append(call)
    return calls


def test_no_more_calls_are_in_flight_than_the_server_allows() -> None:
    """The call above the limit waits until an answer makes room."""
    table = CallTable()
    first, second, third = add(table), add(table), add(table)
    assert taken(table, limit=2) == [first, second]
    assert table.answered(second.id) is second
    assert taken(table, limit=2) == [third]


def test_an_urgent_call_goes_first() -> None:
    """A subscription is made before what waited for it."""
    table = CallTable()
    add(table)
    urgent = add(table, urgent=True)
    assert table.take(64) is urgent


def test_an_answer_that_nobody_asked_for_belongs_to_no_call() -> None:
    """An unknown id, or one that is answered twice, is nobody's."""
    table = CallTable()
    call = add(table)
    assert table.answered(call.id) is None
    taken(table)
    assert table.answered(call.id) is call
    assert table.answered(call.id) is None


def test_a_disconnect_keeps_what_may_be_repeated_in_order_and_gives_back_the_rest() -> None:
    """Calls that are safe to repeat go out again under their ids, in the order in which they were made."""
    table = CallTable()
    sent_safe, sent_unsafe = add(table), add(table, repeatable=False)
    taken(table)
    unsent_safe, unsent_unsafe = add(table), add(table, repeatable=False)
    assert table.disconnected() == [(sent_unsafe, True), (unsent_unsafe, False)]
    assert taken(table) == [sent_safe, unsent_safe]


def test_a_call_that_the_server_put_off_waits_until_it_is_resumed_or_the_connection_is_new() -> None:
    """It is neither sent at once nor lost, and is not sent twice when its pause ends after a reconnect."""
    table = CallTable()
    call = add(table)
    for _ in range(2):
        assert taken(table) == [call]
        table.answered(call.id)
        table.put_off(call)
        assert taken(table) == []
        table.resume(call)
    assert taken(table) == [call]
    table.answered(call.id)
    table.put_off(call)
    table.disconnected()
    table.resume(call)
    assert taken(table) == [call]
    assert call.attempts == 3


def test_an_abandoned_call_in_flight_still_counts_but_tells_nobody() -> None:
    """The server still works on it, so it has its place until it is answered or the connection goes."""
    table = CallTable()
    call, other = add(table), add(table)
    assert taken(table, limit=1) == [call]
    table.abandon(call)
    assert taken(table, limit=1) == []
    assert table.answered(call.id) is call
    assert call.abandoned
    assert taken(table, limit=1) == [other]


def test_an_abandoned_call_that_was_not_sent_never_is() -> None:
    """Its place in the line is given up."""
    table = CallTable()
    call = add(table)
    table.abandon(call)
    assert taken(table) == []
    assert len(table) == 0


class Fates(RuleBasedStateMachine):
    """Each call is answered, given back, abandoned or still held, and none is sent twice without a reason."""

    def __init__(self) -> None:
        super().__init__()
        self.table = CallTable()
        self.held: dict[int, PendingCall] = {}
        self.in_flight: list[PendingCall] = []
        self.put_off: list[PendingCall] = []

    @rule(repeatable=st.booleans(), urgent=st.booleans())
    def make(self, *, repeatable: bool, urgent: bool) -> None:
        """Make a call."""
        call = add(self.table, repeatable=repeatable, urgent=urgent)
        self.held[call.id] = call

    @rule()
    def send(self) -> None:
        """Send the next call, if there is room."""
        call = self.table.take(3)
        if call is not None:
            assert call not in self.in_flight
            assert call.id in self.held
            self.in_flight.append(call)
        assert len(self.in_flight) <= 3

    @precondition(lambda self: self.in_flight)
    @rule()
    def answer(self) -> None:
        """Answer the oldest call."""
        call = self.in_flight.pop(0)
        assert self.table.answered(call.id) is call
        del self.held[call.id]

    @precondition(lambda self: self.in_flight and not self.in_flight[0].abandoned)
    @rule()
    def overload(self) -> None:
        """Answer the oldest call: later."""
        call = self.in_flight.pop(0)
        self.table.answered(call.id)
        self.table.put_off(call)
        self.put_off.append(call)

    @precondition(lambda self: self.put_off)
    @rule()
    def resume(self) -> None:
        """End the pause of a call."""
        self.table.resume(self.put_off.pop(0))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        """Wait for some call no longer."""
        call = data.draw(st.sampled_from(list(self.held.values())))
        self.table.abandon(call)
        if call not in self.in_flight:
            del self.held[call.id]

    @rule()
    def lose(self) -> None:
        """Lose the connection."""
        lost = [call for call, _ in self.table.disconnected()]
        assert all(call.id in self.held and not call.repeatable for call in lost)
        for call in (*lost, *(call for call in self.in_flight if call.abandoned)):
            self.held.pop(call.id, None)
        self.in_flight.clear()

    @invariant()
    def the_table_holds_what_has_no_fate_yet(self) -> None:
        """As many calls are held as were made and are not over."""
        assert len(self.table) == len(self.held)


TestFates = Fates.TestCase
