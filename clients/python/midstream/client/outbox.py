"""Prompts that the server has not accepted yet, in order (SPEC 8).

Pure. They go out one by one: the next is sent when the one before has its answer, so that a prompt
which the server puts off (``overloaded``) is never overtaken by a later one. The same
``message_id`` goes out however often a prompt must be sent, so the server takes it once.
"""

from __future__ import annotations

from collections import deque

from midstream.client.errors import OutboxFull
from midstream.protocol.calls import PromptParams

DEFAULT_OUTBOX_LIMIT = 100
"""Prompts of a session that may wait: more than a person types while a train is in a tunnel."""


class Outbox:
    """The waiting prompts of one session, at most ``limit``, the one on its way included."""

    def __init__(self, session_id: str, limit: int = DEFAULT_OUTBOX_LIMIT) -> None:
        """Begin empty."""
        self._session_id = session_id
        self._limit = limit
        self._waiting: deque[PromptParams] = deque()
        self._sending = False

    def __len__(self) -> int:
        """Return how many prompts have no answer yet."""
        return len(self._waiting)

    def __contains__(self, message_id: str) -> bool:
        """Say whether this prompt has no answer yet."""
        return any(prompt.message_id == message_id for prompt in self._waiting)

    def add(self, prompt: PromptParams) -> None:
        """Keep a prompt.

        Raises:
            OutboxFull: as many as the limit wait already; nothing was kept.

        """
        if len(self._waiting) >= self._limit:
            raise OutboxFull(self._session_id, self._limit)
        self._waiting.append(prompt)

    def take(self) -> PromptParams | None:
        """Return the prompt to be sent now, or None while one is on its way or none waits."""
        if self._sending or not self._waiting:
            return None
        self._sending = True
        return self._waiting[0]

    def answered(self) -> None:
        """Forget the prompt that was on its way: the server accepted or refused it."""
        self._waiting.popleft()
        self._sending = False

    def withdraw(self, message_id: str) -> bool:
        """Take back a prompt that was not sent yet; False where it was, or is not here."""
        for index, prompt in enumerate(self._waiting):
            if prompt.message_id == message_id and not (index == 0 and self._sending):
                del self._waiting[index]
                return True
        return False

    def clear(self) -> list[PromptParams]:
        """Give up all prompts, and return them in order."""
        given_up = list(self._waiting)
        self._waiting.clear()
        self._sending = False
        return given_up
