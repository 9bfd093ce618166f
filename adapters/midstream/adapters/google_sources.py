"""What an answer of Gemini rests on: its grounding, the pages it read, what it quotes (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import DocumentSource, UrlSource
from midstream.adapters.plain import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.plain import Plain

MEDIA_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "html": "text/html",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
"""Media types of documents by the ends of their names; of any other it is not known."""


class Sources:
    """The sources so far. Each is one once, though chunks repeat what was said before."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._known: set[str] = set()

    def of(self, candidate: Plain) -> Iterator[UrlSource | DocumentSource]:
        """Return the sources of a candidate that are new."""
        for source in _sources(candidate):
            key = (
                source.url if isinstance(source, UrlSource) else f"document {source.filename or source.title}"
            )
            if key not in self._known:
                self._known.add(key)
                yield source


def _sources(candidate: Plain) -> Iterator[UrlSource | DocumentSource]:
    for chunk in items(candidate, "groundingMetadata", "groundingChunks"):
        source = _grounding(mapping(chunk))
        if source is not None:
            yield source
    for page in items(candidate, "urlContextMetadata", "urlMetadata"):
        url = text(page, "retrievedUrl")
        if url and text(page, "urlRetrievalStatus") == "URL_RETRIEVAL_STATUS_SUCCESS":
            yield UrlSource(url)
    for citation in items(candidate, "citationMetadata", "citations"):
        url = text(citation, "uri")
        if url:
            yield UrlSource(url, text(citation, "title") or None)


def _grounding(chunk: Plain) -> UrlSource | DocumentSource | None:
    retrieved = mapping(chunk, "retrievedContext")
    place = text(chunk, "web", "uri") or text(chunk, "maps", "uri") or text(chunk, "image", "sourceUri")
    title = text(chunk, "web", "title") or text(chunk, "maps", "title") or text(chunk, "image", "title")
    if place:
        return UrlSource(place, title or None)
    if not retrieved:
        return None
    place = text(retrieved, "uri") or text(retrieved, "fileSearchStore") or text(retrieved, "documentName")
    title = text(retrieved, "title")
    if place.startswith(("http://", "https://")):
        return UrlSource(place, title or None)
    name = place.rpartition("/")[2] or title
    return DocumentSource(_media_type(name), title or name or "Document", filename=name or None)


def _media_type(name: str) -> str:
    return MEDIA_TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")
