"""The cases, a module for each chapter of SPEC.md or a part of one."""

from __future__ import annotations

from importlib import import_module

CHAPTERS = (
    "handshake",
    "framing",
    "refusals",
    "limits",
    "subscribing",
    "catching_up",
    "streaming",
    "pages",
    "prompts",
    "stopping",
    "interactions",
    "sessions",
    "watching",
    "summaries",
    "slow",
    "workers",
    "attaching",
    "writes",
    "own_agent",
    "restarts",
)


def load() -> None:
    """Import all of them, in the order of SPEC.md."""
    for chapter in CHAPTERS:
        import_module(f"{__name__}.{chapter}")
