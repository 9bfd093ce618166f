"""Tasks of a simulation: numbered, so that nothing depends on where they lie in memory."""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_ATTEMPTS = 100


class SimTask(asyncio.Task[T]):
    """A task whose hash is its number, so that a set of tasks is always walked in the same order.

    Such sets are in `TaskGroup`, in `all_tasks` and in what many a program does by itself.

    Attributes:
        sim_serial: 1, 2, 3… in order of creation within its loop.
        sim_context: the context it runs in.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
        name: str | None,
        context: Context,
        serial: int,
    ) -> None:
        # Before the constructor of Task, which already puts the task into a set.
        self.sim_serial = serial
        self.sim_context = context
        super().__init__(coroutine, loop=loop, name=name or f"task-{serial}", context=context)

    def __hash__(self) -> int:
        return self.sim_serial

    def __eq__(self, other: object) -> bool:
        return self is other

    def failed_unseen(self) -> BaseException | None:
        """Return the exception the task ended with, if nobody has asked for it, and count as having asked."""
        if self.done() and not self.cancelled() and self._log_traceback:
            return self.exception()
        return None

    def abandon(self) -> None:
        """Let a task that can never run again go without a word.

        Its `finally` blocks run now, and awaiting in them has no effect.
        """
        self._log_destroy_pending = False
        for _ in range(CLOSE_ATTEMPTS):
            try:
                self.sim_context.run(self.get_coro().close)
            except RuntimeError:
                continue  # it awaited in a finally block
            except Exception:  # noqa: BLE001 - the program is dead: nobody is there to learn of it
                return
            return

    @property
    def sim_label(self) -> str:
        """The task in the words of a trace: its name, and where it waits."""
        return f"{self.get_name()} {where(self)}"


def where(task: asyncio.Task[Any]) -> str:
    """Say at which line of which function a task waits, from its own coroutine inwards."""
    places: list[str] = []
    awaited: object = task.get_coro()
    while awaited is not None and len(places) < 20:
        frame, awaited = _step(awaited)
        if frame is not None:
            code = frame.f_code
            places.append(f"{code.co_qualname} ({code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno})")
    return " > ".join(places) or "ended"


def _step(awaitable: object) -> tuple[FrameType | None, object]:
    """Return the frame that waits in a coroutine or generator, and what it waits for."""
    for prefix, link in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
        if hasattr(awaitable, link):
            return getattr(awaitable, f"{prefix}_frame"), getattr(awaitable, link)
    return None, None
