"""A deterministic asyncio event loop: virtual time, a seeded order of callbacks, networks in memory.

There are no threads and no real I/O. Server and client run on it unmodified, because all that they get from
outside comes through the loop: time, the order in which ready callbacks run, `create_server` and
`create_connection`. `tests/simulation/run.py` runs one scenario on it.

**Time** stands still while anything is ready and then jumps to the next timer, so that hours pass in
milliseconds. Nothing ready and no timer is a deadlock: an immediate failure that says where each task waits.

**Order.** In each turn of the loop, the callbacks that are ready run in an order drawn from the seed; what
they schedule runs in the next turn. Seed 0 keeps asyncio's own order. Each link is FIFO by its own queue,
whatever the order (`tests/pipe.py`).

What the shuffle could break, and what was found (asyncio of Python 3.11 to 3.13, websockets 17.4):

- A task has at most one step scheduled, so its steps cannot be exchanged. A wake-up and a `cancel` meet in
  the task's own flags, not in the queue.
- Callbacks of one future run in any order, and so do the waiters that an event or a lock wakes. `Lock`,
  `Queue` and `Condition` stay correct, because they look again after waking; they are no longer fair.
- asyncio's socket transports schedule `connection_made`, the first read and the end of `create_connection`
  with three `call_soon` and rely on their order. The transports here call `connection_made` first and open
  the pipe after it, in one callback.
- websockets uses futures and one queue for each connection, which hold. `await asyncio.sleep(0)` in its
  `drain` waits one turn, but what was scheduled before it may run in that same turn, after it.
- Code that calls `call_soon` twice and relies on the order fails here, by intention.

**Determinism.** The same seed and the same code give the same trace (`trace_digest`), in another process and
under another `PYTHONHASHSEED` too. Sets of tasks are walked by number, the garbage collector rests during a
run, and the global `random` is seeded. Not determined are `os.urandom`, `secrets` and `uuid4` (WebSocket keys
and masks, connection ids), the machine's clock where it is read past the loop, and the order of sets of
strings or of objects other than tasks: what branches on those differs from run to run. `divergence` in
`run.py` finds such places; classes whose objects are kept in sets can be numbered there (`NUMBERED`).
"""

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from heapq import heapify, heappop
from random import Random
from typing import Any, NoReturn, TypeVar, cast
from zlib import crc32

from tests.simulation.failures import Deadlock, LimitPassed, SimulationFailure
from tests.simulation.host import HOST, OUTSIDE, Host
from tests.simulation.network import Factory, Network
from tests.simulation.tasks import SimTask, where

T = TypeVar("T")
P = TypeVar("P", bound=asyncio.BaseProtocol)

START = 1000.0
"""The loop's time when it is made, in seconds; not 0, so that a time somebody forgot to set shows."""
CANCELLED_TIMERS_KEPT = 100


class SimLoop(asyncio.BaseEventLoop):
    """The event loop of one simulation.

    Attributes:
        network: all links and listeners.
        random: chances for the scenario itself; they do not change the order of callbacks.
        steps: callbacks run so far.
        max_steps, max_time: where `LimitPassed` is raised; the time is the loop's.
        errors: what reached the exception handler.
        journal: a line for each step and each event of a link, if `record` was asked for.
    """

    # What BaseEventLoop keeps and its type stubs do not declare.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _timer_cancelled_count: int
    _stopping: bool

    def __init__(self, seed: int, *, record: bool = False) -> None:
        super().__init__()
        self.seed = seed
        self.random = Random(f"scenario {seed}")
        self.network = Network(self, Random(f"network {seed}"), self.note)
        self.steps = 0
        self.max_steps = 1_000_000
        self.max_time = START + 86_400.0
        self.errors: list[BaseException] = []
        self.journal: list[str] | None = [] if record else None
        self._now = START
        self._order = Random(seed)
        self._digest = 0
        self._tasks: weakref.WeakValueDictionary[int, SimTask[Any]] = weakref.WeakValueDictionary()
        self._task_count = 0
        self._dead: set[Host] = set()
        self._corpses: list[SimTask[Any]] = []  # kept, so that they end with the simulation and not before
        self._settling = False
        self._thread = threading.get_ident()

    # Time and order

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._now

    def _run_once(self) -> None:
        """Run one turn: all that is ready now, in a seeded order, or first jump to the next timer."""
        ready = self._ready
        if self._scheduled:
            self._take_due()
        if not ready and not self._stopping:
            if self._settling:
                self._stopping = True
                return
            self._jump()
        count = len(ready)
        if count > 1 and self.seed:
            batch = list(ready)
            self._order.shuffle(batch)
            ready.clear()
            ready.extend(batch)
        self.steps += count
        if self.steps > self.max_steps:
            raise LimitPassed(self.report(f"more than {self.max_steps} steps"))
        for _ in range(count):
            handle = ready.popleft()
            if not handle.cancelled() and not (self._dead and self._is_dead(handle)):
                self._trace(handle)
                handle._run()  # noqa: SLF001 - what an event loop does

    def _take_due(self) -> None:
        """Move the timers whose time has come to what is ready."""
        timers = self._scheduled
        if self._timer_cancelled_count > CANCELLED_TIMERS_KEPT and 2 * self._timer_cancelled_count > len(
            timers
        ):
            self._timer_cancelled_count = 0
            timers[:] = [timer for timer in timers if not timer.cancelled()]
            heapify(timers)
        while timers and (timers[0].cancelled() or timers[0].when() <= self._now):
            timer = heappop(timers)
            # Tells asyncio that it left the heap.
            timer._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001 - no public way
            if timer.cancelled():
                self._timer_cancelled_count -= 1
            else:
                self._ready.append(timer)

    def _jump(self) -> None:
        """Let time pass until the next timer."""
        if not self._scheduled:
            raise Deadlock(self.report("deadlock: nothing scheduled"))
        when = self._scheduled[0].when()
        if when > self.max_time:
            raise LimitPassed(self.report(f"virtual time would pass {self.max_time}"))
        self._now = when
        self._take_due()

    # The trace

    def trace_digest(self) -> str:
        """Return 16 hex digits that stand for all that ran so far: when, in which order, how many bytes.

        They depend on the code that runs, and on nothing else; another version of Python may run other code.
        """
        return f"{self._digest & (1 << 64) - 1:016x}"

    def note(self, event: str, serial: int, size: int) -> None:
        """Fold an event of a link into the trace."""
        self._digest = hash((self._digest, crc32(event.encode()), serial, size))
        if self.journal is not None:
            self.journal.append(
                f"{self._now:.6f} link {serial // 2} {'down' if serial % 2 else 'up'} {event} {size}"
            )

    def _trace(self, handle: asyncio.Handle) -> None:
        callback: object = getattr(handle, "_callback", None)
        owner: object = getattr(callback, "__self__", None)
        serial: int = getattr(owner, "sim_serial", 0)
        self._digest = hash((self._digest, self._now, serial))
        if self.journal is not None:
            label: object = getattr(owner, "sim_label", getattr(callback, "__qualname__", "callback"))
            self.journal.append(f"{self._now:.6f} {label}")

    def report(self, event: str) -> str:
        """Say what happened, when, and where each task waits."""
        lines = [f"{event} (seed {self.seed}, time {self._now:.6f}, step {self.steps})"]
        lines += [f"  {task.get_name()}: {where(task)}" for task in self.unfinished()]
        return "\n".join(lines)

    # Tasks and hosts

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **_options: object,
    ) -> asyncio.Task[T]:
        """Start a task.

        Options of later Python versions (`eager_start`) are left out: a first step is a step like any other.
        """
        self._task_count += 1
        task = SimTask(
            cast("Coroutine[Any, Any, T]", coro),
            loop=self,
            name=None if name is None else str(name),
            context=copy_context() if context is None else context,
            serial=self._task_count,
        )
        self._tasks[self._task_count] = task
        return task

    def tasks(self) -> list[SimTask[Any]]:
        """Return the tasks that still exist, in order of creation."""
        return [task for _, task in sorted(self._tasks.items())]

    def unfinished(self) -> list[SimTask[Any]]:
        """Return the tasks that have not ended, in order of creation, without those of killed hosts."""
        pending = [task for task in self.tasks() if not task.done()]
        return [task for task in pending if task.sim_context.get(HOST, OUTSIDE) not in self._dead]

    def kill(self, host: Host) -> None:
        """Kill a program as `kill -9` does: nothing of it runs again, no `finally` and no timer.

        Its listeners and connections are closed, as the kernel would. The caller must release what the
        program held outside the loop (a database, a lock). Its `finally` blocks run only when the simulation
        is over.
        """
        self._dead.add(host)
        killed = [task for task in self.tasks() if task.sim_context.get(HOST, OUTSIDE) is host]
        for task in killed:
            task.failed_unseen()  # whoever was about to ask for it is dead
        self._corpses += killed
        self.network.kill(host)

    def _is_dead(self, handle: asyncio.Handle) -> bool:
        # get_context() is there since Python 3.12 only.
        context: Context = handle._context  # type: ignore[attr-defined]  # noqa: SLF001
        return context.get(HOST, OUTSIDE) in self._dead

    @property
    def killed(self) -> bool:
        """Whether any program was killed."""
        return bool(self._dead)

    def dissolve(self) -> None:
        """Let go of all that ran on the loop, which is closed."""
        self.network = Network(self, Random(0), self.note)
        self._corpses.clear()
        self._tasks.clear()

    # Failures

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the error, so that `run` fails with it; a handler set by the code under test is called too."""
        error = context.get("exception")
        if not isinstance(error, BaseException):
            error = SimulationFailure(str(context.get("message")))
        error.add_note(f"{context.get('message')} (seed {self.seed}, time {self._now:.6f})")
        self.errors.append(error)
        if self.is_closed() or self.get_exception_handler() is not None:
            super().call_exception_handler(context)

    def settle(self) -> None:
        """Run what is ready, and what that makes ready, without letting time pass."""
        self._settling = True
        try:
            self.run_forever()
        finally:
            self._settling = False

    # The outside

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback, from this thread only.

        Raises:
            RuntimeError: From another thread.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError(
                "a simulation has one thread, and another one called into it; what it ran is not repeatable"
            )
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> NoReturn:  # noqa: ARG002 - asyncio's names
        """Refuse to start a thread.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            f"a simulation has no threads, so {func!r} cannot run in an executor; call it in the loop"
        )

    async def create_server(
        self,
        protocol_factory: Factory,
        host: str | Sequence[str] | None = None,
        port: int | None = None,
        **options: object,
    ) -> asyncio.Server:
        """Listen in memory. Options that only concern real sockets are ignored.

        Raises:
            OSError: Somebody listens on the address.
            NotImplementedError: For TLS or a given socket.
        """
        _refuse_real(options)
        server = self.network.create_server(protocol_factory, host, port)
        if options.get("start_serving", True):
            server.listen()
        return cast("asyncio.Server", server)  # it has the surface; asyncio.Server itself wants real sockets

    async def create_connection(
        self,
        protocol_factory: Callable[[], P],
        host: str | None = None,
        port: int | None = None,
        **options: object,
    ) -> tuple[asyncio.Transport, P]:
        """Connect in memory. Options that only concern real sockets are ignored.

        Raises:
            ConnectionRefusedError: Nobody listens there.
            TimeoutError: The way is cut off.
            NotImplementedError: For TLS or a given socket.
        """
        _refuse_real(options)
        if host is None or port is None:
            raise ValueError("a simulated connection needs a host and a port")
        return await self.network.connect(protocol_factory, host, port)

    def _write_to_self(self) -> None:
        """Wake nobody: there is no selector that could sleep."""


def _refuse_real(options: dict[str, object]) -> None:
    for name in ("ssl", "sock"):
        if options.get(name):
            raise NotImplementedError(f"{name}= is not simulated; links carry plain bytes in memory")
