"""When to connect, to ask whether the link lives, to give it up, and to come back (SPEC 10).

Pure: :class:`Reconnect` is told what happened and what time it is, and answers with what is to be
done. It opens nothing, waits for nothing and reads no clock.
"""

from __future__ import annotations

import enum
from random import Random
from typing import TypeAlias

import msgspec

FINAL_CODES = range(4500, 5000)
"""Close codes after which a client does not come back: it would meet the same refusal (SPEC 11)."""


def comes_back(close_code: int) -> bool:
    """Say whether to connect again after this close code: always, but in the range that says no."""
    return close_code not in FINAL_CODES


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a connection, in seconds."""

    backoff_s: float = 0.5
    """The first pause is a random one up to this; each further one up to twice the one before."""
    backoff_limit_s: float = 30.0
    """No pause is longer, but the one that a server asks for."""
    stable_s: float = 10.0
    """A connection that lived this long was good: the pauses begin anew."""
    connect_s: float = 10.0
    """From the first packet to the ``welcome``."""
    probe_s: float = 5.0
    """After a sleep of the machine: how long the answer to a ping may take."""
    check_s: float = 5.0
    """How often the clocks are compared to notice a sleep; never more than a third of a heartbeat."""
    goaway_limit_s: float = 600.0
    """The longest pause that a server may ask for."""
    heartbeat_s: float = 15.0
    """The heartbeat until a ``welcome`` names the server's."""


DEFAULT_POLICY = Policy()


def full_jitter(random: Random, attempt: int, policy: Policy = DEFAULT_POLICY) -> float:
    """Return the pause before the next try, in seconds, after ``attempt`` earlier pauses.

    Uniform from 0 to a bound that doubles up to a limit, so that clients who lost a server together
    do not come back together.
    """
    # past the limit the attempt no longer matters, and its power must not overflow a float
    bound = min(policy.backoff_limit_s, policy.backoff_s * 2.0 ** min(attempt, 64))
    return random.uniform(0.0, bound)


class Backoff:
    """Pauses that grow until something goes well."""

    def __init__(self, random: Random, policy: Policy = DEFAULT_POLICY) -> None:
        """Begin with the shortest."""
        self._random = random
        self._policy = policy
        self._attempt = 0

    def pause(self) -> float:
        """Return the next pause, in seconds."""
        self._attempt += 1
        return full_jitter(self._random, self._attempt - 1, self._policy)

    def reset(self) -> None:
        """Begin anew, because something went well."""
        self._attempt = 0


class Connect(msgspec.Struct, frozen=True):
    """Open a connection; then report ``welcomed`` or ``lost``."""


class Drop(msgspec.Struct, frozen=True):
    """Give up the connection, or the attempt, without waiting for the other end; then report ``lost``."""

    why: str


class SendPing(msgspec.Struct, frozen=True):
    """Send a ``ping`` with this nonce."""

    nonce: int


Effect: TypeAlias = Connect | Drop | SendPing


class Phase(enum.Enum):
    """Where a connection stands."""

    IDLE = "idle"
    CONNECTING = "connecting"
    OPEN = "open"
    DROPPING = "dropping"
    WAITING = "waiting"
    CLOSED = "closed"


class Reconnect:
    """Keeps one connection alive for as long as it is wanted.

    ``now`` is monotonic seconds, ``wall_ms`` the date in ms. The owner calls :meth:`poll` when
    :attr:`deadline` has passed, carries out the effects that any method returns, and reports what
    happened. As long as it is neither idle nor closed there is a deadline, so it never gets stuck.
    """

    def __init__(self, random: Random, policy: Policy = DEFAULT_POLICY) -> None:
        """Stand idle until :meth:`start`."""
        self.phase = Phase.IDLE
        self._policy = policy
        self._backoff = Backoff(random, policy)
        self._heartbeat_s = policy.heartbeat_s
        self._checked_at = 0.0
        self._checked_wall_ms = 0
        self._connect_by = 0.0
        self._retry_at = 0.0
        self._welcomed_at: float | None = None
        self._received_at = 0.0
        self._pinged = False
        self._spoke_at = 0.0
        self._nonce = 0
        self._probe: tuple[int, float] | None = None
        self._return_at: float | None = None

    @property
    def deadline(self) -> float | None:
        """When :meth:`poll` is due, in the seconds of ``now``; None while idle or closed."""
        check_at = self._checked_at + min(self._policy.check_s, self._heartbeat_s / 3)
        if self.phase is Phase.CONNECTING:
            return self._connect_by
        if self.phase is Phase.WAITING:
            return min(self._retry_at, check_at)
        if self.phase is Phase.OPEN:
            silence_at = self._received_at + self._heartbeat_s * (2 if self._pinged else 1)
            others = (self._probe[1] if self._probe else None, self._return_at)
            speak_at = self._spoke_at + self._heartbeat_s
            return min(silence_at, speak_at, check_at, *(at for at in others if at is not None))
        return check_at if self.phase is Phase.DROPPING else None

    def start(self, now: float, wall_ms: int) -> list[Effect]:
        """Begin: connect at once."""
        if self.phase is not Phase.IDLE:
            return []
        self._check_clocks(now, wall_ms)
        return self._connect(now)

    def welcomed(self, now: float, heartbeat_s: float) -> None:
        """Learn that the server said ``welcome``, and its heartbeat."""
        if self.phase is not Phase.CONNECTING:
            return
        self.phase = Phase.OPEN
        self._heartbeat_s = heartbeat_s
        self._welcomed_at = self._spoke_at = now
        self._probe = self._return_at = None
        self.received(now)

    def received(self, now: float) -> None:
        """Learn that something came from the server."""
        self._received_at = now
        self._pinged = False

    def ponged(self, nonce: int) -> None:
        """Learn that a ``ping`` was answered."""
        if self._probe and nonce >= self._probe[0]:
            self._probe = None

    def goaway(self, now: float, after_s: float) -> None:
        """Learn that the server drains, and when it wants to see this client again."""
        if self.phase is Phase.OPEN:
            self._return_at = now + min(max(after_s, 0.0), self._policy.goaway_limit_s)

    def lost(self, now: float, *, final: bool = False, at_once: bool = False) -> None:
        """Learn that the connection or the attempt ended.

        ``final`` says that coming back is of no use, ``at_once`` that nothing is to be waited for.
        """
        if self.phase in {Phase.IDLE, Phase.CLOSED}:
            return
        if self._welcomed_at is not None and now - self._welcomed_at >= self._policy.stable_s:
            self._backoff.reset()
        self._welcomed_at = None
        if final:
            self.phase = Phase.CLOSED
            return
        self.phase = Phase.WAITING
        if at_once:
            self._retry_at = now
        elif self._return_at is not None:
            self._retry_at = max(now, self._return_at)
        elif self._probe is not None:  # lost in the sleep: whoever opens the lid wants to be connected
            self._retry_at = now
        else:
            self._retry_at = now + self._backoff.pause()
        self._probe = self._return_at = None

    def close(self) -> None:
        """End for good."""
        self.phase = Phase.CLOSED

    def poll(self, now: float, wall_ms: int) -> list[Effect]:
        """Do what is due."""
        slept = self._check_clocks(now, wall_ms)
        if self.phase is Phase.CONNECTING and now >= self._connect_by:
            return self._drop(f"the server did not answer within {self._policy.connect_s:g} s")
        if self.phase is Phase.WAITING and (slept or now >= self._retry_at):
            return self._connect(now)
        if self.phase is Phase.OPEN:
            return self._watch(now, slept=slept)
        return []

    def _watch(self, now: float, *, slept: bool) -> list[Effect]:
        if self._return_at is not None and now >= self._return_at:
            return self._drop("the server is going away")
        if self._probe and now >= self._probe[1]:
            return self._drop(f"no answer within {self._policy.probe_s:g} s after the machine slept")
        # compared as the deadline is computed: with now - received, a rounding could put it off without end
        if now >= self._received_at + 2 * self._heartbeat_s:
            return self._drop(f"nothing was received for two heartbeats ({2 * self._heartbeat_s:g} s)")
        if slept and self._probe is None:
            self._probe = (self._nonce, now + self._policy.probe_s)
            return self._ping(now)
        asks = now >= self._received_at + self._heartbeat_s and not self._pinged
        # it speaks in any case: the server's own ping may wait behind all that a slow link has to carry
        if asks or now >= self._spoke_at + self._heartbeat_s:
            self._pinged |= asks
            return self._ping(now)
        return []

    def _ping(self, now: float) -> list[Effect]:
        self._spoke_at = now
        self._nonce += 1
        return [SendPing(self._nonce - 1)]

    def _drop(self, why: str) -> list[Effect]:
        self.phase = Phase.DROPPING
        return [Drop(why)]

    def _connect(self, now: float) -> list[Effect]:
        self.phase = Phase.CONNECTING
        self._connect_by = now + self._policy.connect_s
        return [Connect()]

    def _check_clocks(self, now: float, wall_ms: int) -> bool:
        """Compare the clocks: the wall goes on while a machine sleeps, the monotonic one does not."""
        gone = (wall_ms - self._checked_wall_ms) / 1000 - (now - self._checked_at)
        self._checked_at, self._checked_wall_ms = now, wall_ms
        return gone > self._heartbeat_s
