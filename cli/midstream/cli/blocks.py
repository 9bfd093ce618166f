"""Where a growing Markdown text may be cut, so that what stands before the cut is drawn for good. Pure."""

from __future__ import annotations

import re

_BOUNDARY = re.compile(r"\n[ \t]*\n(?=[^\s])")
"""An empty line before a line that is not indented: an indented one may belong to a list above."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def complete_blocks(text: str) -> tuple[str, str]:
    """Return the blocks of a text that nothing after them can change, and the rest; joined they are the text.

    A fence of code that is open is not cut.
    """
    cut = 0
    for boundary in _BOUNDARY.finditer(text):
        fences = _FENCE.findall(text, cut, boundary.start() + 1)
        if len(fences) % 2 == 0:
            cut = boundary.end()
    return text[:cut], text[cut:]
