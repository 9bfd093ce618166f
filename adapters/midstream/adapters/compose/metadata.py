"""What a provider wants back of what it once said (pure). It may hold anything: these accessors are total."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

if TYPE_CHECKING:
    from msgspec import UnsetType

    from midstream.protocol.model import ProviderMetadata
    from midstream.protocol.values import Value


def of(metadata: ProviderMetadata | UnsetType, provider: str) -> dict[str, Value]:
    """Return the provider's own object; empty where there is none."""
    return {} if metadata is UNSET else metadata.get(provider, {})


def words(own: dict[str, Value], name: str) -> str:
    """Return a field that is text, else an empty text."""
    value = own.get(name)
    return value if isinstance(value, str) else ""
