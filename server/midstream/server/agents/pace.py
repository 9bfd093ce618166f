"""How fast the built-in agents stream."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD = re.compile(r"\s*\S+\s*")


class Pace:
    """Waits at a multiple of an agent's own speed.

    ``speed`` is a factor: 1 is the agent's own pace, 2 twice as fast, 0 waits never. It must not be
    negative.
    """

    def __init__(self, speed: float = 1.0) -> None:
        if speed < 0:
            raise ValueError(f"speed is {speed}. Expected 0 (never wait) or a positive factor.")
        self._speed = speed

    async def wait(self, seconds: float) -> None:
        """Wait for what would be so many seconds at speed 1; always lets others run."""
        await asyncio.sleep(seconds / self._speed if self._speed else 0)


def words(text: str) -> Iterator[str]:
    """Cut text into words, each with the space around it; joined they are the text again."""
    return iter(_WORD.findall(text) or ([text] if text else []))
