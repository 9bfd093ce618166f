"""The token that a client gives, and what it does when that ends (SPEC 4.7, 10.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Final, Literal, TypeAlias

Token: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A token, or a function, async or not, that returns one that is good now: it is asked again for each
connection, and in time before a token expires."""

UNAUTHORIZED: Final = 4504
TOKEN_EXPIRED: Final = 4505
RENEW_AGAIN_S: Final = 5.0
"""After which a renewal that failed is tried again."""
_PART: Final = 0.8
_LEAST_S: Final = 10.0

Verdict: TypeAlias = Literal["as the code says", "at once", "later", "never"]
"""Whether to come back after a connection ended."""


class Credentials:
    """A client's token, or where it gets one."""

    def __init__(self, token: Token | None) -> None:
        """Take it; nothing is asked for yet."""
        self._token = token
        self._refusals = 0
        self._expiries = 0

    @property
    def is_renewable(self) -> bool:
        """Whether there may be another token later."""
        return callable(self._token)

    async def get(self) -> str | None:
        """Return a token for now. Raises what the function raises."""
        if not callable(self._token):
            return self._token
        token = self._token()
        return await token if isawaitable(token) else token

    def accepted(self) -> None:
        """Learn that the server took the token."""
        self._refusals = self._expiries = 0

    def ended(self, code: int | None) -> Verdict:
        """Judge the end of a connection by its close code."""
        if not self.is_renewable or code not in {UNAUTHORIZED, TOKEN_EXPIRED}:
            return "as the code says"
        if code == TOKEN_EXPIRED:
            self._expiries += 1
            return "at once" if self._expiries == 1 else "later"
        self._refusals += 1
        return "at once" if self._refusals == 1 else "never"


def renew_after(seconds: float) -> float:
    """Return when to renew a token that is good for so long: at 80 %, and at least 10 s before its end."""
    return min(seconds * _PART, seconds - _LEAST_S) if seconds > _LEAST_S else seconds * _PART
