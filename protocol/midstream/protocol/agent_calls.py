"""The calls of remote agents: ``agent.*`` (SPEC 14)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from midstream.protocol.agents import AgentId, WriteResult
from midstream.protocol.errors import ErrorInfo
from midstream.protocol.frames import Count
from midstream.protocol.model import InteractionPart, Message, Turn


class _Params(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class _Result(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    pass


class EmptyResult(_Result, frozen=True, kw_only=True):
    """Done; there is nothing to say."""


class RegisterParams(_Params, frozen=True, kw_only=True):
    """``agent.register``: this connection takes turns, ``concurrency`` at a time.

    ``name`` is the worker's, and no other worker's: a second registration of it replaces the first.
    ``instance`` names one life of the worker's process. ``resumes`` says that it can go on with
    turns that another process began.
    """

    name: AgentId
    instance: AgentId
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] = 1
    resumes: bool = False


class RegisterResult(_Result, frozen=True, kw_only=True):
    """How long a lost worker's turns wait for it."""

    lease_ms: int


class AttachParams(_Params, frozen=True, kw_only=True):
    """``agent.attach``: takes a turn, or takes it up again with the ``generation`` held before.

    ``waiting`` names interactions whose outcome the worker waits for.
    """

    session_id: AgentId
    turn_id: AgentId
    generation: Count | UnsetType = UNSET
    waiting: list[AgentId] = []


class AttachResult(_Result, frozen=True, kw_only=True):
    """The turn as it is, and from where the worker goes on.

    ``next_n`` numbers the next write; those below ``durable_n + 1`` are on disk. ``messages`` are the
    turn's open messages, streamed text included. ``results`` and ``refused`` are the newest of the
    writes that the worker made before.
    """

    channel: int
    generation: int
    next_n: int
    durable_n: int
    lease_ms: int
    window_bytes: int
    turn: Turn
    prompt: Message
    messages: list[Message] = []
    interactions: list[InteractionPart] = []
    inputs: int = 0
    results: list[tuple[int, WriteResult]] = []
    refused: list[tuple[int, ErrorInfo]] = []


class DetachParams(_Params, frozen=True, kw_only=True):
    """``agent.detach``: gives an attached turn up, to be offered to others at once."""

    channel: Count


class DeclineParams(_Params, frozen=True, kw_only=True):
    """``agent.decline``: does not want the offered turn."""

    session_id: AgentId
    turn_id: AgentId


class UnregisterParams(_Params, frozen=True, kw_only=True):
    """``agent.unregister``: no more offers; the attached turns go on."""


AGENT_PARAMS: dict[str, type[msgspec.Struct]] = {
    "agent.register": RegisterParams,
    "agent.unregister": UnregisterParams,
    "agent.attach": AttachParams,
    "agent.detach": DetachParams,
    "agent.decline": DeclineParams,
}
"""The parameters of every method of a worker."""

AGENT_RESULTS: dict[str, type[msgspec.Struct]] = {
    "agent.register": RegisterResult,
    "agent.unregister": EmptyResult,
    "agent.attach": AttachResult,
    "agent.detach": EmptyResult,
    "agent.decline": EmptyResult,
}
"""The result of every method of a worker."""
