"""The prompts of one session: sent once and in order, and followed until their turns end (SPEC 8)."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from midstream.client.calls import Answer
from midstream.client.errors import IdempotencyConflict, IncompatibleServer, MidstreamError
from midstream.client.exchange import Exchange
from midstream.client.outbox import Outbox
from midstream.client.turns import Progress
from midstream.protocol.calls import PromptParams, PromptResult, TurnParams, TurnResult
from midstream.protocol.merge import Replica


class Prompts:
    """Sends the prompts of a session, and learns what becomes of them.

    It learns from the replica where it can. Where the replica cannot tell (the input left the
    queue unseen, the turn is not among those it holds) it asks: a repeated ``prompt`` gives the
    input's present state, ``turn`` that of the turn.
    """

    def __init__(self, replica: Replica, exchange: Exchange, outbox_limit: int) -> None:
        """Begin without prompts."""
        self._replica = replica
        self._exchange = exchange
        self._outbox = Outbox(replica.session_id, outbox_limit)
        self._followed: dict[str, Progress] = {}
        self._live = False
        self._closed = False

    def __len__(self) -> int:
        """Return how many prompts are followed: those whose turns are not over."""
        return len(self._followed)

    def add(self, prompt: PromptParams) -> Progress:
        """Take a prompt, send it as soon as its turn comes, and follow it.

        The same prompt again gives what is known of it.

        Raises:
            OutboxFull: too many wait to be sent.
            IdempotencyConflict: the ``message_id`` is that of another prompt that is followed.

        """
        known = self._followed.get(prompt.message_id)
        if known is not None:
            if known.prompt.parts != prompt.parts:
                raise IdempotencyConflict("message_id", prompt.message_id)
            return known
        self._outbox.add(prompt)
        progress = self._followed[prompt.message_id] = Progress(prompt)
        self._pump()
        return progress

    def withdraw(self, message_id: str) -> PromptResult | None:
        """Take back a prompt that was never sent; None where that cannot be done here."""
        if not self._outbox.withdraw(message_id):
            return None
        result = PromptResult(state="cancelled", message_id=message_id)
        self._followed.pop(message_id).learn(result)
        return result

    def settle(self, *, live: bool, synced: bool = False) -> None:
        """Look into the replica for news of the prompts; ``synced``: something may have been missed."""
        self._live = live
        if not live or not self._followed:
            return
        for progress in list(self._followed.values()):
            self._settle(progress, synced=synced)

    def close(self, error: MidstreamError) -> None:
        """Follow nothing any more; handles get the error."""
        self._closed = True
        self._outbox.clear()
        for progress in list(self._followed.values()):
            progress.fail(error)
        self._followed.clear()

    def _pump(self) -> None:
        prompt = None if self._closed else self._outbox.take()
        if prompt is not None:
            reply = partial(self._accepted, self._followed[prompt.message_id])
            self._exchange.start("prompt", prompt, reply, lane=prompt.session_id, repeatable=True)

    def _accepted(self, progress: Progress, answer: Answer) -> None:
        if self._closed:
            return
        self._outbox.answered()
        self._learn(progress, answer)
        self._pump()

    def _learn(self, progress: Progress, answer: Answer) -> None:
        """Take the answer to a prompt, or to its repetition."""
        progress.asking = False
        if self._closed:
            return
        if isinstance(answer, PromptResult):
            progress.learn(answer)
        else:
            progress.fail(_problem(answer), "refused" if progress.state == "pending" else None)
        # what is still queued now is in the replica's queue too, and leaves it in sight
        if self._live and progress.turn_id is not None:
            self._look_for_end(progress, progress.turn_id, synced=False)
        self._drop_if_over(progress)

    def _settle(self, progress: Progress, *, synced: bool) -> None:
        if progress.state == "queued":
            self._look_for_start(progress)
        if progress.turn_id is not None:
            self._look_for_end(progress, progress.turn_id, synced=synced)
        self._drop_if_over(progress)

    def _drop_if_over(self, progress: Progress) -> None:
        if progress.over:
            self._followed.pop(progress.prompt.message_id, None)

    def _look_for_start(self, progress: Progress) -> None:
        message_id = progress.prompt.message_id
        queue = [] if self._replica.session is None else self._replica.session.queue
        if message_id in queue:
            progress.moved(queue.index(message_id) + 1)
            return
        message = self._replica.message(message_id)
        if message is not None and message.turn_id is not UNSET:
            progress.took(message.turn_id)
        elif not progress.asking:
            progress.asking = True
            reply = partial(self._learn, progress)
            session_id = self._replica.session_id
            self._exchange.start("prompt", progress.prompt, reply, lane=session_id, repeatable=True)

    def _look_for_end(self, progress: Progress, turn_id: str, *, synced: bool) -> None:
        turn = self._replica.turns.get(turn_id)
        if turn is not None:
            progress.follow(turn)
        elif not progress.asking and (progress.turn is None or synced):
            progress.asking = True
            session_id = self._replica.session_id
            params = TurnParams(session_id=session_id, turn_id=turn_id)
            reply = partial(self._asked_turn, progress)
            self._exchange.start("turn", params, reply, lane=session_id, repeatable=True)

    def _asked_turn(self, progress: Progress, answer: Answer) -> None:
        progress.asking = False
        if self._closed:
            return
        if isinstance(answer, TurnResult) and answer.turn is not None:
            progress.follow(answer.turn)
        else:
            progress.fail(_problem(answer))
        self._drop_if_over(progress)


def _problem(answer: Answer) -> MidstreamError:
    if isinstance(answer, MidstreamError):
        return answer
    return IncompatibleServer(f"A prompt was answered by a {type(answer).__name__} that says nothing of it.")
