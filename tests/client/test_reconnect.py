"""A client comes back soon but not all at once, notices a dead link, and stays away where it is told to."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from midstream.client.reconnect import (
    DEFAULT_POLICY,
    Backoff,
    Connect,
    Drop,
    Effect,
    Phase,
    Reconnect,
    SendPing,
    comes_back,
    full_jitter,
)
from tests.clock import ManualClock

HEARTBEAT_S = 15.0


class Driver:
    """Holds a `Reconnect` and a clock, and moves both to the next deadline."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.core = Reconnect(Random(seed))

    def start(self) -> list[Effect]:
        """Begin."""
        return self.core.start(self.clock.now(), self.clock.wall_ms())

    def welcomed(self) -> None:
        """Begin, and be welcomed."""
        self.start()
        self.core.welcomed(self.clock.now(), HEARTBEAT_S)

    def poll(self) -> list[Effect]:
        """Ask what is due now."""
        return self.core.poll(self.clock.now(), self.clock.wall_ms())

    def lost(self, *, final: bool = False) -> None:
        """Lose the connection now."""
        self.core.lost(self.clock.now(), final=final)

    def wait(self) -> float:
        """Go to the deadline, and return how long that took."""
        deadline = self.core.deadline
        assert deadline is not None
        seconds = max(0.0, deadline - self.clock.now())
        self.clock.advance(seconds)
        return seconds

    def until_effect(self) -> tuple[list[Effect], float]:
        """Go from deadline to deadline until something is to be done; return it and the time it took."""
        passed = 0.0
        for _ in range(1000):
            passed += self.wait()
            effects = self.poll()
            if effects:
                return effects, passed
        raise AssertionError("nothing came to be done in a thousand deadlines")


@given(seed=st.integers(0, 2**32), attempts=st.integers(1, 200))
def test_each_pause_is_within_a_bound_that_doubles_up_to_thirty_seconds(seed: int, attempts: int) -> None:
    """The nth pause lies between 0 and the smaller of 0.5 s times 2 to the n and 30 s."""
    backoff = Backoff(Random(seed))
    for attempt in range(attempts):
        assert 0.0 <= backoff.pause() <= min(30.0, 0.5 * 2**attempt)


def test_pauses_are_spread_over_their_whole_range() -> None:
    """Full jitter: a thousand clients that lost one server come back all over the range, not together."""
    pauses = [full_jitter(Random(seed), attempt=4) for seed in range(1000)]
    for tenth in range(10):
        share = sum(1 for pause in pauses if tenth * 0.8 <= pause < (tenth + 1) * 0.8)
        assert 50 < share < 150


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1000, True),
        (1001, True),
        (1006, True),
        (1011, True),
        (1012, True),
        (1013, True),
        (4000, True),
        (4499, True),
        (4500, False),
        (4999, False),
    ],
)
def test_the_range_of_a_close_code_says_whether_to_come_back(code: int, *, expected: bool) -> None:
    """Only 4500 to 4999 mean: stay away."""
    assert comes_back(code) is expected


def test_it_connects_at_once_and_only_once() -> None:
    """Starting connects; starting again does not make a second connection."""
    driver = Driver()
    assert driver.start() == [Connect()]
    assert driver.start() == []


def test_failed_attempts_wait_longer_and_longer_until_one_is_stable() -> None:
    """Pauses grow while nothing works, and a connection that lived ten seconds starts them anew."""
    driver = Driver()
    driver.start()
    longest = 0.0
    for _ in range(12):
        driver.lost()
        effects, passed = driver.until_effect()
        assert effects == [Connect()]
        assert passed <= DEFAULT_POLICY.backoff_limit_s
        longest = max(longest, passed)
    assert longest > DEFAULT_POLICY.backoff_s
    driver.core.welcomed(driver.clock.now(), HEARTBEAT_S)
    driver.clock.advance(DEFAULT_POLICY.stable_s)
    driver.core.received(driver.clock.now())
    driver.lost()
    effects, passed = driver.until_effect()
    assert effects == [Connect()]
    assert passed <= DEFAULT_POLICY.backoff_s


def test_a_connection_that_fails_right_after_its_welcome_does_not_reset_the_pauses() -> None:
    """A server that says welcome and crashes is not stormed."""
    longest = 0.0
    driver = Driver()
    driver.start()
    for _ in range(10):
        driver.core.welcomed(driver.clock.now(), HEARTBEAT_S)
        driver.lost()
        effects, passed = driver.until_effect()
        assert effects == [Connect()]
        longest = max(longest, passed)
    assert longest > DEFAULT_POLICY.backoff_s


def test_an_attempt_without_a_welcome_is_given_up() -> None:
    """A server that accepts and says nothing costs the time to connect, not forever."""
    driver = Driver()
    driver.start()
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], Drop)
    assert passed == DEFAULT_POLICY.connect_s
    driver.lost()
    assert driver.until_effect()[0] == [Connect()]


def test_a_final_loss_is_the_end() -> None:
    """After a close code that says no there is no deadline and nothing more to do."""
    driver = Driver()
    driver.welcomed()
    driver.lost(final=True)
    assert driver.core.phase is Phase.CLOSED
    assert driver.core.deadline is None
    driver.clock.advance(3600)
    assert driver.poll() == []
    assert driver.start() == []


def test_silence_of_a_heartbeat_is_asked_about_and_of_two_is_the_end() -> None:
    """One ping goes out after a heartbeat without a byte; after two the link is dropped."""
    driver = Driver()
    driver.welcomed()
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], SendPing)
    assert passed == HEARTBEAT_S
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], Drop)
    assert passed == HEARTBEAT_S


def test_whatever_is_received_keeps_the_link() -> None:
    """A server that says anything once a heartbeat is never dropped."""
    driver = Driver()
    driver.welcomed()
    for _ in range(20):
        driver.clock.advance(HEARTBEAT_S - 0.1)
        driver.core.received(driver.clock.now())
        assert not any(isinstance(effect, Drop) for effect in driver.poll())
    assert driver.core.phase is Phase.OPEN


def test_it_speaks_once_a_heartbeat_however_much_it_hears() -> None:
    """A server whose ping waits behind much on a slow link hears of the client before two heartbeats."""
    driver = Driver()
    driver.welcomed()
    spoke_at = driver.clock.now()
    for _ in range(100):
        driver.clock.advance(1.0)
        driver.core.received(driver.clock.now())
        if driver.poll():
            assert driver.clock.now() - spoke_at == HEARTBEAT_S
            spoke_at = driver.clock.now()
    assert driver.clock.now() - spoke_at < HEARTBEAT_S


def test_goaway_makes_it_return_after_the_time_that_was_asked_for() -> None:
    """The server closes, and the pause is what it said, not one of the client's."""
    driver = Driver()
    driver.welcomed()
    driver.core.goaway(driver.clock.now(), 12.0)
    driver.clock.advance(2.0)
    driver.lost()
    effects, passed = driver.until_effect()
    assert effects == [Connect()]
    assert passed == pytest.approx(10.0)


def test_goaway_without_a_close_leaves_when_the_time_has_come() -> None:
    """A server that asks and does not close is left, and met again at once."""
    driver = Driver()
    driver.welcomed()
    driver.core.goaway(driver.clock.now(), 3.0)
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], Drop)
    assert passed == pytest.approx(3.0)
    driver.lost()
    effects, passed = driver.until_effect()
    assert (effects, passed) == ([Connect()], 0.0)


def test_goaway_cannot_send_a_client_away_for_good() -> None:
    """A pause beyond the limit is cut to it."""
    driver = Driver()
    driver.welcomed()
    driver.core.goaway(driver.clock.now(), 1e12)
    driver.lost()
    effects, passed = driver.until_effect()
    assert effects == [Connect()]
    assert passed == pytest.approx(DEFAULT_POLICY.goaway_limit_s)


@pytest.mark.parametrize("silent", [True, False])
def test_after_a_sleep_the_link_is_probed_and_replaced_at_once_if_it_did_not_survive(*, silent: bool) -> None:
    """The wall went on while monotonic time stood still: the next look asks, and waits a short time only."""
    driver = Driver()
    driver.welcomed()
    driver.clock.skew_wall(3_600_000)
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], SendPing)
    assert passed <= DEFAULT_POLICY.check_s
    if silent:
        driver.core.received(driver.clock.now())
        effects, passed = driver.until_effect()
        assert isinstance(effects[0], Drop)
        assert passed == pytest.approx(DEFAULT_POLICY.probe_s)
    driver.lost()
    assert driver.until_effect() == ([Connect()], 0.0)


def test_after_a_sleep_an_answer_to_the_probe_keeps_the_link() -> None:
    """The pong to that very ping shows that the link survived the sleep."""
    driver = Driver()
    driver.welcomed()
    driver.clock.skew_wall(3_600_000)
    effects, _ = driver.until_effect()
    ping = effects[0]
    assert isinstance(ping, SendPing)
    driver.core.received(driver.clock.now())
    driver.core.ponged(ping.nonce)
    effects, passed = driver.until_effect()
    assert isinstance(effects[0], SendPing)
    assert passed == pytest.approx(HEARTBEAT_S)


def test_an_older_pong_does_not_answer_the_probe() -> None:
    """What was on its way before the sleep proves nothing."""
    driver = Driver()
    driver.welcomed()
    effects, _ = driver.until_effect()
    before = effects[0]
    assert isinstance(before, SendPing)
    driver.core.received(driver.clock.now())
    driver.clock.skew_wall(3_600_000)
    driver.until_effect()
    driver.core.received(driver.clock.now())
    driver.core.ponged(before.nonce)
    assert isinstance(driver.until_effect()[0][0], Drop)


def test_a_sleep_during_a_pause_ends_the_pause() -> None:
    """Whoever opens the lid wants to be connected now."""
    driver = Driver()
    driver.start()
    for _ in range(8):
        driver.lost()
        driver.until_effect()
    driver.lost()
    driver.clock.skew_wall(60_000)
    assert driver.poll() == [Connect()]


def test_a_wall_clock_that_goes_back_means_nothing() -> None:
    """An administrator who sets the clock back causes no traffic."""
    driver = Driver()
    driver.welcomed()
    driver.clock.skew_wall(-600_000)
    assert driver.poll() == []
    assert driver.core.phase is Phase.OPEN


@given(starts=st.lists(st.floats(0, 20), min_size=1, max_size=5), wall_ms=st.integers(-5000, 5000))
def test_what_is_due_at_a_deadline_is_done_at_it(starts: list[float], wall_ms: int) -> None:
    """A deadline never comes again: no rounding of time lets it wait for itself without end."""
    driver = Driver()
    driver.welcomed()
    driver.clock.skew_wall(wall_ms)
    for start in starts:
        driver.clock.advance(start)
        driver.core.received(driver.clock.now())
        for _ in range(5):
            deadline = driver.core.deadline
            assert deadline is not None
            effects = driver.core.poll(deadline, driver.clock.wall_ms())
            assert effects or (driver.core.deadline or 0) > deadline
            if driver.core.phase is not Phase.OPEN:
                return


class Weather(RuleBasedStateMachine):
    """Whatever happens, there is at most one connection, always a deadline, and a way back to connecting."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.connections = len(self.driver.start())

    @rule()
    def welcome(self) -> None:
        """The server says welcome."""
        self.driver.core.welcomed(self.driver.clock.now(), HEARTBEAT_S)

    @rule()
    def receive(self) -> None:
        """The server says anything."""
        self.driver.core.received(self.driver.clock.now())

    @rule(nonce=st.integers(0, 5))
    def pong(self, nonce: int) -> None:
        """The server answers some ping."""
        self.driver.core.ponged(nonce)

    @rule(seconds=st.floats(-1, 1e9))
    def goaway(self, seconds: float) -> None:
        """The server drains."""
        self.driver.core.goaway(self.driver.clock.now(), seconds)

    @rule()
    def lose(self) -> None:
        """The connection or the attempt ends."""
        self.connections = 0
        self.driver.lost()

    @rule(seconds=st.floats(0, 60))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.driver.clock.advance(seconds)

    @rule(ms=st.integers(-100_000, 100_000))
    def skew(self, ms: int) -> None:
        """The machine sleeps, or somebody sets its clock."""
        self.driver.clock.skew_wall(ms)

    @rule()
    def poll(self) -> None:
        """The owner asks what is due."""
        self.connections += self.driver.poll().count(Connect())

    @invariant()
    def one_connection_and_a_deadline(self) -> None:
        """There are never two connections, and it never stands still."""
        assert self.connections <= 1
        assert self.driver.core.deadline is not None

    def teardown(self) -> None:
        """With a server that says nothing any more, it comes back to connecting."""
        for _ in range(4):
            if self.driver.core.phase is Phase.DROPPING:
                self.driver.lost()
            effects, _ = self.driver.until_effect()
            if effects == [Connect()]:
                return
        raise AssertionError("it did not come back")


TestWeather = Weather.TestCase
