"""What goes wrong in the event loop itself, said once and not for every time."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, Final

import structlog

QUIET_SECONDS: Final = 3.0
"""After how long without another failure to accept it is over; asyncio tries again after one."""
_NO_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = structlog.get_logger("midstream.server")


class Troubles:
    """An exception handler of an event loop."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._since = 0.0
        self._over: asyncio.TimerHandle | None = None

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what nobody caught."""
        error = context.get("exception")
        if isinstance(error, OSError) and "accept" in context.get("message", "") and error.errno in _NO_ROOM:
            self._cannot_accept(loop, error)
        elif isinstance(error, OSError) and error.errno == errno.ENOTCONN:
            # asyncio ends our side of a stream whose peer has cut it in the same moment
            log.debug("peer_was_gone", error=str(error))
        else:
            loop.default_exception_handler(context)

    def _cannot_accept(self, loop: asyncio.AbstractEventLoop, error: OSError) -> None:
        if self._over is None:
            self._since = loop.time()
            log.error(
                "connections_not_accepted",
                error=str(error),
                do="raise the limit of open files (ulimit -n), or let fewer clients in; who is connected is"
                " served, and others are let in when there is room",
            )
        else:
            self._over.cancel()
        self._over = loop.call_later(QUIET_SECONDS, self._accepts_again, loop)

    def _accepts_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._over = None
        log.warning("connections_accepted_again", seconds=round(loop.time() - self._since, 1))
