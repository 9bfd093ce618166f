"""A text or a reasoning that grows, fed with pieces that may be cut anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.plain import unicode

if TYPE_CHECKING:
    from midstream.agents import TextStream
    from midstream.protocol.model import ProviderMetadata


def merged(first: ProviderMetadata | None, second: ProviderMetadata | None) -> ProviderMetadata | None:
    """Return both; where they name the same field of a provider, the second has it."""
    if not first or not second:
        return second or first
    return {name: {**first.get(name, {}), **second.get(name, {})} for name in {**first, **second}}


class Growing:
    """A text or a reasoning that is open."""

    def __init__(self, stream: TextStream, metadata: ProviderMetadata | None) -> None:
        """Keep what it was started with."""
        self._stream = stream
        self._metadata = metadata
        self._join = Halves()

    async def open(self) -> None:
        """Open the part."""
        await self._stream.__aenter__()

    async def append(self, text: str) -> None:
        """Append what is whole of it."""
        whole = self._join.feed(text)
        if whole:
            await self._stream.append(whole)

    async def end(self, metadata: ProviderMetadata | None) -> None:
        """End the part, with what the provider says about it now."""
        rest = self._join.rest()
        if rest:
            await self._stream.append(rest)
        await self._stream.done(provider_metadata=merged(self._metadata, metadata))


class Halves:
    """Joins surrogate pairs that are cut in two; a half that stays alone becomes U+FFFD."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is whole."""
        if text.isascii() and not self._held:
            return text
        if not text:
            return ""
        text, self._held = self._held + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return unicode(text)

    def rest(self) -> str:
        """Return what was held and never completed."""
        held, self._held = self._held, ""
        return unicode(held)
