"""Files in what people said: the bytes of data URLs, and notes on what a model cannot take (pure)."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, Struct

if TYPE_CHECKING:
    from collections.abc import Collection

    from midstream.protocol.model import FilePart

TEXTUAL = {
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
}
"""Media types of text that do not say so by ``text/``."""
COMMON = frozenset({"application/pdf", "image/gif", "image/jpeg", "image/png", "image/webp"})
"""Media types that most models take."""
ALIASES = {"image/jpg": "image/jpeg", "audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav"}
"""Names that are in use for media types, and those that providers know."""


class Attachment(Struct, frozen=True):
    """A file, ready to be given to a model. One of ``content`` and ``url`` is there, or neither."""

    media_type: str
    filename: str | None
    content: bytes | None
    """The bytes of a data URL (RFC 2397)."""
    url: str | None
    """An address that the provider can fetch."""

    @property
    def base64(self) -> str:
        """The content in base64, without line breaks."""
        return base64.b64encode(self.content or b"").decode()

    @property
    def data_url(self) -> str:
        """The content as a data URL, in the form that all take."""
        return f"data:{self.media_type};base64,{self.base64}"

    @property
    def is_image(self) -> bool:
        """Whether it is a picture."""
        return self.media_type.startswith("image/")

    def is_one_of(self, types: Collection[str]) -> bool:
        """Whether its media type is among these; one that ends with a slash stands for all that begin so."""
        kind, _, _ = self.media_type.partition("/")
        return self.media_type in types or f"{kind}/" in types

    @property
    def words(self) -> str | None:
        """The content of a file of text that is not blank, else None."""
        textual = self.media_type.startswith("text/") or self.media_type in TEXTUAL
        if not textual or self.content is None:
            return None
        words = self.content.decode(errors="replace")
        return words if words.strip() else None

    @property
    def note(self) -> str:
        """What to say where the model cannot take the file itself."""
        known = [self.filename or "unnamed", self.media_type, *([self.url] if self.url else [])]
        return f"[Attached file, whose content is not shown: {', '.join(known)}]"

    @property
    def titled_words(self) -> str:
        """The text of the file under its name, or the note."""
        words = self.words
        return self.note if words is None else f"[Attached file: {self.filename or 'unnamed'}]\n{words}"


def attachment_of(part: FilePart) -> Attachment:
    """Return the file of a part. A data URL that cannot be read gives one that has no content."""
    media_type = part.media_type.split(";", 1)[0].strip().lower()
    media_type = ALIASES.get(media_type, media_type) or "application/octet-stream"
    filename = None if part.filename is UNSET or not part.filename.strip() else part.filename
    scheme, _, rest = part.url.partition(":")
    if scheme.lower() == "data":
        return Attachment(media_type, filename, _content(rest), None)
    fetchable = scheme.lower() in {"http", "https"} and rest.startswith("//")
    return Attachment(media_type, filename, None, part.url if fetchable else None)


def _content(rest: str) -> bytes | None:
    header, comma, body = rest.partition(",")
    if not comma:
        return None
    content = unquote_to_bytes(body)
    if header.lower().endswith(";base64"):
        try:
            content = base64.b64decode(b"".join(content.split()), validate=True)
        except binascii.Error:
            return None
    return content or None
