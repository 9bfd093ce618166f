"""What reads one provider's stream: events in, neutral events out (pure)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from midstream.adapters.plain import NESTING, Plain, carried, plain
from midstream.protocol.values import problem_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from midstream.adapters.events import Event
    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value


class Reader(ABC):
    """Reads one stream of one provider, from its first event to its end.

    It takes the library's own objects and the plain events of the wire alike, and never raises: an
    event that it does not know is skipped and counted.
    """

    provider: ClassVar[str]
    """The name that the provider's metadata is kept under."""
    spans_streams: ClassVar[bool] = False
    """A run comes in several streams, which one reader has to read: a result may come in a later one."""

    def __init__(self) -> None:
        """Begin a stream."""
        self.unknown: Counter[str] = Counter()
        """How often each kind of event came that this reader does not know."""
        self.blocks = Blocks()

    def begin(self, stream: object) -> None:  # noqa: B027  # most readers have nothing to do here
        """Begin to read from this object, whose events follow; a reader that is given again goes on."""

    def read(self, event: object) -> list[Event]:
        """Return what an event says."""
        return list(self.events(plain(event)))

    def end(self) -> list[Event]:
        """Return what is still to be said when no event follows."""
        return []

    @abstractmethod
    def events(self, event: Plain) -> Iterable[Event]:
        """Return what a plain event says. It may hold anything: use the accessors of :mod:`.plain`."""

    def skip(self, kind: str) -> None:
        """Count an event that is not known."""
        self.unknown[kind or "(no type)"] += 1

    def metadata(self, **fields: object) -> ProviderMetadata | None:
        """Return metadata of this provider; None where no field has a value."""
        kept = {name: carried(value) for name, value in fields.items() if value is not None}
        return {self.provider: kept} if kept else None


class Blocks:
    """Names for what grows, unique over a stream whatever ids the provider uses again."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._count = 0
        self._open: dict[object, str] = {}

    def open(self, key: object) -> str:
        """Return a new name for what the provider calls ``key`` from now on."""
        self._count += 1
        self._open[key] = name = f"{self._count}:{key}"
        return name

    def name(self, key: object) -> str | None:
        """Return the name of what is open under ``key``."""
        return self._open.get(key)

    def close(self, key: object) -> str | None:
        """Return the name of what was open under ``key``, which is not open any more."""
        return self._open.pop(key, None)

    def forget(self) -> None:
        """Say that nothing is open any more: the provider begins to count anew."""
        self._open.clear()

    def keys(self) -> list[object]:
        """Return the provider's names of what is open, the oldest first."""
        return list(self._open)


def arguments(words: str) -> Value | UnsetType:
    """Return the arguments of a tool call, parsed; an empty text is ``{}``, UNSET what is no JSON."""
    if not words.strip():
        return {}
    try:
        value: Value = msgspec.json.decode(words.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return UNSET
    return UNSET if problem_in(value, nesting=NESTING) else value


def usage(  # each is a number that some provider reports
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    total_tokens: int | None = None,
    reasoning_tokens: int | None = None,
    cached_tokens: int | None = None,
    raw: object = None,
) -> dict[str, Value]:
    """Return the data of a ``usage`` part: the same names for every provider, and its own words as ``raw``.

    ``input_tokens`` includes ``cached_tokens`` and ``output_tokens`` includes ``reasoning_tokens``; what
    is not known is left out. A missing total is the sum.
    """
    if total_tokens is None and input_tokens is not None and output_tokens is not None:
        total_tokens = input_tokens + output_tokens
    numbers = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": total_tokens,
        "reasoning_tokens": reasoning_tokens,
        "cached_tokens": cached_tokens,
    }
    data = {name: carried(number) for name, number in numbers.items() if number is not None}
    if raw is not None:
        data["raw"] = carried(raw)
    return data
