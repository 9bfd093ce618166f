"""Log lines with named fields, as JSON for machines or for a person's terminal.

What is bound with :func:`structlog.contextvars.bound_contextvars` (``connection_id``, ``session_id``)
stands in every line that is written in that context, those of libraries included. Tracebacks
never show local variables: they would hold messages and tokens.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TextIO

import structlog
from structlog.processors import ExceptionRenderer
from structlog.stdlib import ProcessorFormatter
from structlog.tracebacks import ExceptionDictTransformer

if TYPE_CHECKING:
    from structlog.typing import Processor

    from midstream.server.config import LogFormat, LogLevel

LIBRARY_LOGGERS = ("websockets", "asyncio")
"""Loggers of libraries that write at ``info`` and ``debug`` what we log ourselves, or frames with the text
of messages. They are held to warnings at every level of ours."""


def configure(
    format: LogFormat = "auto",
    level: LogLevel = "info",
    *,
    stream: TextIO | None = None,
) -> None:
    """Set up structlog and the standard library's logging to write to ``stream`` (standard error).

    Replaces the root logger's handlers; may be called again. ``auto`` is ``console`` where the stream
    is a terminal, else ``json``.
    """
    out = sys.stderr if stream is None else stream
    if format == "auto":
        format = "console" if out.isatty() else "json"
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[ProcessorFormatter.remove_processors_meta, *_renderers(format, colors=out.isatty())],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in LIBRARY_LOGGERS:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_shared(), ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        # not cached: a cached logger would go on writing to the stream of an earlier call
        cache_logger_on_first_use=False,
    )


def configure_unless_done(format: LogFormat, level: LogLevel, *, stream: TextIO | None = None) -> None:
    """Set up as :func:`configure` does, unless the program has set up structlog or logging itself.

    Where nobody has, structlog would write every level to standard output, and draw tracebacks with local
    variables where rich is installed.
    """
    if not structlog.is_configured() and not logging.getLogger().handlers:
        configure(format, level, stream=stream)


def _shared() -> list[Processor]:
    """Return what happens to every line, ours or a library's."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderers(format: LogFormat, *, colors: bool) -> list[Processor]:
    if format == "console":
        return [
            structlog.dev.ConsoleRenderer(
                colors=colors, exception_formatter=structlog.dev.plain_traceback, sort_keys=False
            )
        ]
    return [
        ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
        structlog.processors.JSONRenderer(ensure_ascii=False),
    ]
