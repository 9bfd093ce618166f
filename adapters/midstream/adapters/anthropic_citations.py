"""The citations in Anthropic's texts: a source each, and what goes back in the next request (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import DocumentSource, UrlSource
from midstream.adapters.plain import Plain, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.events import Event
    from midstream.adapters.reader import Reader

MEDIA_TYPES = {
    "char_location": "text/plain",
    "content_block_location": "text/plain",
    "page_location": "application/pdf",
}
"""The kinds of citation of a document, and what it must be to be cited so."""


class Citations:
    """What was cited so far. A page or document is a source once, however often it is cited."""

    def __init__(self, reader: Reader) -> None:
        """Begin a stream."""
        self._reader = reader
        self._sources: set[tuple[str, str]] = set()
        self._of: dict[int | None, list[Plain]] = {}

    def add(self, index: int | None, citation: Plain) -> Iterator[Event]:
        """Keep a citation of the text at ``index``; say its source, where it is new."""
        self._of.setdefault(index, []).append(citation)
        source = self._source(citation)
        if source is None:
            self._reader.skip(f"citation:{text(citation, 'type')}")
            return
        key = ("url", source.url) if isinstance(source, UrlSource) else ("document", source.title)
        if key not in self._sources:
            self._sources.add(key)
            yield source

    def take(self, index: int | None) -> list[Plain]:
        """Return the citations of a text that has ended."""
        return self._of.pop(index, [])

    def _source(self, citation: Plain) -> UrlSource | DocumentSource | None:
        kind = text(citation, "type")
        place = text(citation, "url") or text(citation, "source")
        metadata = self._reader.metadata(type=kind, cited_text=citation.get("cited_text"))
        if kind in {"web_search_result_location", "search_result_location"} and place:
            title = text(citation, "title") or None
            if place.startswith(("http://", "https://")):
                return UrlSource(place, title, metadata=metadata)
            return DocumentSource("text/plain", title or place, metadata=metadata)
        media_type = MEDIA_TYPES.get(kind)
        if media_type is None:
            return None
        title = text(citation, "document_title") or f"Document {(whole(citation, 'document_index') or 0) + 1}"
        return DocumentSource(media_type, title, metadata=metadata)
