"""The texts of a Responses stream: what messages say and what they rest on, and reasonings (pure).

Each summary of a reasoning is a part of its own. Its end waits for the item's, because the last one
carries what the next request needs back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.adapters.events import (
    DocumentSource,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    Refusal,
    TextDelta,
    TextEnded,
    TextStarted,
)
from midstream.adapters.openai_words import Pages
from midstream.adapters.plain import Plain, items, mapping, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midstream.adapters.events import Event
    from midstream.adapters.reader import Reader

TEXTS = {"output_text": "text", "refusal": "refusal"}
"""The kinds of content that are texts, each with the field that holds it."""


class Texts:
    """What the messages of a stream have open."""

    def __init__(self, reader: Reader) -> None:
        """Begin a stream."""
        self._reader = reader
        self._messages: dict[int | None, Plain] = {}
        self._streamed: set[str] = set()  # the open blocks that some text came for
        self._ended: set[tuple[int | None, int | None]] = set()
        self._pages = Pages()
        self._documents: set[str] = set()

    def begin(self) -> None:
        """Forget the items of the response before."""
        self._messages.clear()
        self._ended.clear()
        self._streamed.clear()

    def add(self, index: int | None, message: Plain) -> None:
        """Keep what a message says about its texts."""
        self._messages[index] = message

    def open(self, event: Plain, kind: str) -> Iterator[Event]:
        """Begin a text at the place that the event names."""
        index, part = _place(event)
        message = self._messages.get(index, {})
        metadata = self._reader.metadata(
            item_id=text(event, "item_id") or text(message, "id") or None,
            phase=text(message, "phase") or None,
            refusal=True if kind == "refusal" else None,
        )
        yield TextStarted(self._reader.blocks.open(("text", index, part)), metadata)

    def grow(self, event: Plain, kind: str, words: str) -> Iterator[Event]:
        """Append to the text at the place that the event names."""
        key = ("text", *_place(event))
        if self._reader.blocks.name(key) is None:
            yield from self.open(event, kind)
        block = self._reader.blocks.name(key)
        if block and words:
            self._streamed.add(block)
            yield TextDelta(block, words)
            if kind == "refusal":
                yield Refusal(words)

    def end(self, event: Plain) -> Iterator[Event]:
        """End the text that is whole in this event, and give it where it did not stream."""
        part = mapping(event, "part")
        kind = text(part, "type")
        place = _place(event)
        if kind not in TEXTS or place in self._ended:
            return
        key = ("text", *place)
        if self._reader.blocks.name(key) not in self._streamed:
            yield from self.grow(event, kind, text(part, TEXTS[kind]))
        for annotation in items(part, "annotations"):
            yield from self.cite(annotation)
        self._ended.add(place)
        if block := self._reader.blocks.close(key):
            annotations = items(part, "annotations") or None
            yield TextEnded(block, self._reader.metadata(annotations=annotations))

    def end_message(self, index: int | None, message: Plain) -> Iterator[Event]:
        """End what is open of a message, and give what did not stream."""
        for number, part in enumerate(items(message, "content")):
            yield from self.end({"output_index": index, "content_index": number, "part": part})

    def cite(self, annotation: object) -> Iterator[Event]:
        """Say what a text rests on; once, however often it is cited."""
        kind, file_id = text(annotation, "type"), text(annotation, "file_id")
        if kind == "url_citation":
            yield from self._pages.say([(text(annotation, "url"), text(annotation, "title"))])
        elif not file_id:
            self._reader.skip(f"annotation.{kind}")
        elif file_id not in self._documents:
            self._documents.add(file_id)
            name = text(annotation, "filename")
            yield DocumentSource(
                "text/plain" if kind == "file_citation" else "application/octet-stream",
                name or file_id,
                filename=name or None,
                metadata=self._reader.metadata(
                    file_id=file_id, container_id=text(annotation, "container_id") or None
                ),
            )


class Reasonings:
    """The reasonings of a stream that are open."""

    def __init__(self, reader: Reader) -> None:
        """Begin a stream."""
        self._reader = reader
        self._last: dict[int | None, str] = {}  # of each item, the block that grows or grew last

    def begin(self) -> None:
        """Forget the items of the response before."""
        self._last.clear()

    def grow(self, event: Plain) -> Iterator[Event]:
        """Append to the summary, or the reasoning itself, that the event names; begin it where it is new."""
        index = whole(event, "output_index")
        summary = "summary_index" in event
        part = whole(event, "summary_index" if summary else "content_index")
        key = ("reasoning", index, summary, part)
        block = self._reader.blocks.name(key)
        if block is None:
            if last := self._last.get(index):
                yield ReasoningEnded(last)
            block = self._last[index] = self._reader.blocks.open(key)
            yield ReasoningStarted(block, self._reader.metadata(item_id=text(event, "item_id") or None))
        if words := text(event, "delta"):
            yield ReasoningDelta(block, words)

    def end(self, index: int | None, item: Plain) -> Iterator[Event]:
        """End the reasoning of an item, and give what did not stream."""
        if index not in self._last:
            for number, part in enumerate([*items(item, "summary"), *items(item, "content")]):
                place: Plain = {"output_index": index, "summary_index": number, "item_id": text(item, "id")}
                yield from self.grow({**place, "delta": text(part, "text")})
        kind = text(item, "type")
        metadata = self._reader.metadata(
            item_id=text(item, "id") or None,
            type=None if kind == "reasoning" else kind,
            encrypted_content=text(item, "encrypted_content") or None,
        )
        block = self._last.pop(index, None) or self._reader.blocks.open(("reasoning", index))
        yield ReasoningEnded(block, metadata)


def _place(event: Plain) -> tuple[int | None, int | None]:
    """Return where a text stands: the number of its item, and its own number in that."""
    return whole(event, "output_index"), whole(event, "content_index")
