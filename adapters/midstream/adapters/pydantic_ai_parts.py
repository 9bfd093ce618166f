"""What Pydantic AI's objects hold, beside the order of its events (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from midstream.adapters.events import Data, Event, ToolInputDelta, ToolInputReady
from midstream.adapters.objects import field, number, pairs, words
from midstream.adapters.plain import Plain, carried
from midstream.adapters.reader import usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value


class Growing:
    """A part of the response that is being read."""

    def __init__(self, kind: str, block: str, part: object) -> None:
        """Begin with what its start says."""
        self.kind = kind
        self.block = block
        self.input: dict[str, object] | None = pairs(part, "args") or None
        """Arguments that come as a map; else they stream as text."""
        self.metadata: ProviderMetadata | None = None
        self.ended = False
        """For a text: nothing more is expected. For a call: its arguments are complete."""


def more_arguments(growing: Growing, delta: object) -> Iterable[Event]:
    """Return more of a call's arguments; those that come as a map are told when they are complete."""
    more = field(delta, "args_delta")
    if isinstance(more, str) and more:
        yield ToolInputDelta(growing.block, more)
    elif pairs(delta, "args_delta"):
        growing.input = {**(growing.input or {}), **pairs(delta, "args_delta")}


def ready(growing: Growing) -> Iterable[Event]:
    """Say that a call's arguments are complete, once."""
    if growing.kind not in {"tool-call", "builtin-tool-call"} or growing.ended:
        return
    growing.ended = True
    given = UNSET if growing.input is None else carried(growing.input)
    yield ToolInputReady(growing.block, input=given, metadata=growing.metadata)


def custom(event: Plain) -> Iterable[Event]:
    """Return an event of the application's own, for the user interface."""
    payload = {name: value for name, value in event.items() if name not in {"name", "event_kind"}}
    yield Data(words(event, "name") or "custom", jsonable(payload))


def response_of(stream: object) -> object:
    """Return the response that a stream's object has, once all of it was read."""
    response = field(stream, "response")  # of an agent's stream
    get = field(stream, "get")  # of a model's stream
    return get() if response is None and callable(get) else response


def usage_of(used: object) -> dict[str, Value]:
    """Return the usage of a response or a run in the words of all providers."""
    return usage(
        input_tokens=number(used, "input_tokens"),
        output_tokens=number(used, "output_tokens"),
        reasoning_tokens=number(used, "output_reasoning_tokens") or None,
        cached_tokens=number(used, "cache_read_tokens") or None,
        raw=jsonable(used),
    )


def jsonable(value: object) -> Value:
    """Return a value of the library as JSON has it."""
    if value is None or isinstance(value, (str, bool, int)):
        return carried(value)
    from pydantic_core import to_jsonable_python  # noqa: PLC0415  # there wherever such a value comes from

    return carried(to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True, fallback=str))
