"""Finds the agent that a server was told to run: ``demo``, ``replay:DIR`` or ``module:name``."""

from __future__ import annotations

import importlib
import inspect
from functools import reduce
from typing import TYPE_CHECKING, cast

from midstream.server.agents.demo import demo_agent
from midstream.server.agents.recordings import RecordingError
from midstream.server.agents.replay import replay_agent

if TYPE_CHECKING:
    from midstream.agents import Agent

FORMS = "`demo`, `replay:DIR`, or `module:name` for an async function of your own"


class AgentUnavailable(Exception):
    """There is no such agent; the text names what was asked for, says why, and what is expected."""

    def __init__(self, spec: str, problem: str) -> None:
        super().__init__(f"Agent {spec!r} cannot be used: {problem}")


def agent_named(spec: str, *, speed: float = 1.0) -> Agent:
    """Return the agent of this name. ``speed`` is for the two that are built in (0: without pauses).

    A module is imported as Python imports it; ``name`` may have dots.

    Raises:
        AgentUnavailable: there is none; whatever an imported module raises is its cause.

    """
    kind, _, rest = spec.partition(":")
    if spec == "demo":
        return demo_agent(speed=speed)
    if not rest:
        raise AgentUnavailable(spec, f"expected {FORMS}.")
    if kind == "replay":
        try:
            return replay_agent(rest, speed=speed)
        except RecordingError as error:
            raise AgentUnavailable(spec, str(error)) from error
    return _imported(spec, kind, rest)


def _imported(spec: str, module: str, name: str) -> Agent:
    if "/" in module or module.endswith(".py"):
        stem = module.rpartition("/")[2].removesuffix(".py")
        problem = f"expected a module as Python imports it, such as `{stem}:{name}`, in its own folder."
        raise AgentUnavailable(spec, problem)
    try:
        found: object = importlib.import_module(module)
    except ImportError as error:
        raise AgentUnavailable(
            spec, f"{error}. Is its file in this folder or in PYTHONPATH, and all that it needs installed?"
        ) from error
    except Exception as error:  # a module may raise anything
        raise AgentUnavailable(spec, f"importing {module} raised {type(error).__name__}: {error}") from error
    try:
        agent: object = reduce(getattr, name.split("."), found)
    except AttributeError:
        raise AgentUnavailable(spec, f"module {module} has no {name!r}.") from None
    if inspect.iscoroutinefunction(agent) or _is_called_asynchronously(agent):
        return cast("Agent", agent)
    raise AgentUnavailable(spec, f"{name!r} is no async function. Expected `async def {name}(turn)`.")


def _is_called_asynchronously(thing: object) -> bool:
    """Say whether this is an object with an ``async def __call__``, and not the class of such objects."""
    return not isinstance(thing, type) and inspect.iscoroutinefunction(getattr(thing, "__call__", None))  # noqa: B004 - what it returns matters
