"""A session as an application holds it: the replica, what changes, and what can be asked for (SPEC 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from midstream.client.errors import InvalidRequest, MidstreamError, SessionClosed
from midstream.client.history import History, VerifyReport
from midstream.client.mutations import Mutation
from midstream.client.prompts import Prompts
from midstream.client.replica import DEFAULT_MUTATION_LIMIT
from midstream.client.streams import Fanout, Stream
from midstream.client.subscription import SessionState, Subscription, Tools
from midstream.client.turns import TurnHandle
from midstream.protocol import calls
from midstream.protocol.frames import Signal
from midstream.protocol.limits import DEFAULT_LIMITS
from midstream.protocol.merge import Replica
from midstream.protocol.model import (
    ApprovalMode,
    ApprovalResponse,
    InteractionPart,
    InteractionResponse,
    Message,
    QuestionAnswer,
    QuestionResponse,
    Summary,
    TextPart,
    Turn,
    UserPart,
)
from midstream.protocol.model import Session as SessionInfo
from midstream.protocol.values import Value, problem_in

R = TypeVar("R", bound=msgspec.Struct)


class Owner(Protocol):
    """What a session asks of its client."""

    async def session(self, session_id: str, *, include_internal: bool = False) -> Session:
        """Return another session, subscribed and synced."""
        ...

    def forget(self, session: Session) -> None:
        """Learn that a session is closed."""
        ...


class Session:
    """One conversation, kept equal to the server's. Get it from :meth:`Client.session`; all who ask share it.

    What is read here (``messages``, ``turn``, ...) is the replica: it is never torn, and while the
    session is not ``live`` it is what was known last.
    """

    def __init__(self, subscription: Subscription, tools: Tools, owner: Owner, outbox_limit: int) -> None:
        """Belong to a client, which brings frames and the state of the link."""
        self.session_id = subscription.session_id
        self._subscription = subscription
        self._exchange = tools.exchange
        self._owner = owner
        self._random = tools.random
        self._signals: Fanout[Signal] = Fanout(100)
        self._prompts = Prompts(self._law, tools.exchange, outbox_limit)
        self._history = History(
            subscription.replica,
            tools.exchange,
            ready=lambda: self.until_live(tools.exchange.timeout_s),
            shown=subscription.shown,
        )
        subscription.on_news = self._on_news
        subscription.on_signal = self._signals.publish
        subscription.on_closed = self._on_closed

    @property
    def state(self) -> SessionState:
        """``connecting``, ``syncing``, ``live``, ``offline`` or ``closed``."""
        return self._subscription.state

    @property
    def error(self) -> MidstreamError | None:
        """Why the session is closed, where this client did not close it."""
        return self._subscription.error

    @property
    def include_internal(self) -> bool:
        """Whether the agent's internal messages are shown."""
        return self._law.include_internal

    @property
    def problem(self) -> str | None:
        """What last ended the connection or an attempt, in words; None while there is a connection."""
        return self._exchange.problem

    @property
    def messages(self) -> list[Message]:
        """The messages of the window, whole, ascending by sequence. A new list after each change."""
        return self._law.messages()

    @property
    def has_earlier(self) -> bool:
        """Whether there are messages before the first of :attr:`messages`; see :meth:`load_earlier`."""
        return self._law.has_more

    @property
    def info(self) -> SessionInfo:
        """The session's own state: title, metadata, counts, queue."""
        info = self._law.session
        if info is None:
            raise SessionClosed(self.session_id, "it was never synced")
        return info

    @property
    def turn(self) -> Turn | None:
        """The turn that runs now."""
        return self._law.running_turn

    @property
    def turns(self) -> Mapping[str, Turn]:
        """The known turns by id: those of the messages, and the newest 32."""
        return self._law.turns

    @property
    def queue(self) -> list[str]:
        """The ids of accepted input that is not in a message yet, in order."""
        return list(self.info.queue)

    @property
    def version(self) -> int:
        """The version of the session that the replica shows."""
        return self._law.version

    def mutations(self, *, limit: int = DEFAULT_MUTATION_LIMIT) -> Stream[Mutation]:
        """Return a stream of all that changes from now on, to read with ``async for``.

        At most ``limit`` mutations wait. A reader that is slower gets one of variant ``reset`` in
        place of all that waited, and reads :attr:`messages` again; so after a sync that replaced the
        replica, and after a clear. The stream ends when the session closes, with its error if any.
        """
        return self._subscription.replica.mutations(limit=limit)

    def states(self) -> Stream[SessionState]:
        """Return a stream of the states from now on; a slow reader misses the oldest."""
        return self._subscription.states.reader()

    def signals(self) -> Stream[Signal]:
        """Return a stream of signals (typing, presence) from now on; a slow reader misses the oldest."""
        return self._signals.reader()

    async def prompt(
        self,
        content: str | Sequence[UserPart],
        *,
        message_id: str | None = None,
        delivery: calls.Delivery = "auto",
    ) -> TurnHandle:
        """Give the agent input. Returns at once: the prompt is kept here until the server has it.

        Prompts of a session are sent in order, each under its ``message_id``, as often as needed; the
        server takes it once. ``await handle.accepted()`` tells when it is on the server's disk. What
        is only kept here is lost with this process.

        Raises:
            OutboxFull: too many prompts wait for the connection.
            InvalidRequest: the content holds what the protocol does not carry.
            IdempotencyConflict: this ``message_id`` was just used for other content.
            SessionClosed: the session is closed here.

        """
        self._check_open()
        parts: list[UserPart] = [TextPart(text=content)] if isinstance(content, str) else list(content)
        prompt = calls.PromptParams(
            session_id=self.session_id,
            message_id=message_id or self._new_id("msg"),
            parts=parts,
            delivery=delivery,
        )
        problem = problem_in(prompt, nesting=DEFAULT_LIMITS.nesting - 1)
        if problem:
            raise InvalidRequest(*problem)
        return TurnHandle(self._prompts.add(prompt), self)

    async def stop(
        self, turn_id: str = "current", *, cancel_queue: calls.CancelQueue = "own"
    ) -> calls.StopResult:
        """Stop a turn, and with it queued input: one's own, all, or none.

        A turn that is over already stays as it is. Without a connection, ``current`` means the turn
        that the replica shows: a stop that comes late must not hit another.

        Raises:
            ConnectionLost: ``current`` was asked for and the connection went before the answer.

        """
        if turn_id == "current" and self.state != "live" and self.turn is not None:
            turn_id = self.turn.turn_id
        params = calls.StopParams(session_id=self.session_id, turn_id=turn_id, cancel_queue=cancel_queue)
        return await self._ask("stop", params, calls.StopResult, repeatable=turn_id != "current")

    async def cancel_input(self, message_id: str) -> calls.PromptResult:
        """Take a queued prompt back, and return where it is now: one that a turn has stays there."""
        withdrawn = self._prompts.withdraw(message_id)
        if withdrawn is not None:
            return withdrawn
        params = calls.CancelInputParams(session_id=self.session_id, message_id=message_id)
        return await self._ask("cancel_input", params, calls.PromptResult, repeatable=True)

    async def interactions(self) -> list[calls.PendingInteraction]:
        """Return what waits for a person's answer, in order of appearance."""
        params = calls.InteractionsParams(session_id=self.session_id)
        return (await self._ask("interactions", params, calls.InteractionsResult, repeatable=True)).items

    async def respond(self, interaction_id: str, response: InteractionResponse) -> InteractionPart:
        """Answer an interaction; the first answer wins.

        Raises:
            InteractionClosed: it has another outcome already; ``details`` has it.
            InvalidRequest: the response does not fit the request.

        """
        params = calls.RespondParams(
            session_id=self.session_id, interaction_id=interaction_id, response=response
        )
        return (await self._ask("respond", params, calls.RespondResult, repeatable=True)).interaction

    async def approve(self, interaction_id: str, reason: str | None = None) -> InteractionPart:
        """Approve what an interaction asks for."""
        response = ApprovalResponse(decision="approved", reason=UNSET if reason is None else reason)
        return await self.respond(interaction_id, response)

    async def deny(self, interaction_id: str, reason: str | None = None) -> InteractionPart:
        """Deny what an interaction asks for."""
        response = ApprovalResponse(decision="denied", reason=UNSET if reason is None else reason)
        return await self.respond(interaction_id, response)

    async def answer(self, interaction_id: str, answers: Mapping[str, str | list[str]]) -> InteractionPart:
        """Answer all questions of an interaction: a value, or a list of values, by question id."""
        given = [QuestionAnswer(question_id=name, value=value) for name, value in answers.items()]
        return await self.respond(interaction_id, QuestionResponse(answers=given))

    async def load_earlier(self, limit: int = 50) -> bool:
        """Extend :attr:`messages` backwards by up to ``limit`` (1 to 200); False where there were none."""
        return await self._history.load_earlier(limit)

    async def verify(self) -> VerifyReport:
        """Compare the replica with the server by digests, each page of 200 at one and the same version."""
        return await self._history.verify()

    async def compact(self, through_sequence: int, summary: str) -> Summary:
        """Store a summary of all messages up to ``through_sequence``: the agent is then given that instead.

        The messages stay. To do the same again is harmless.

        Raises:
            InvalidRequest: there is no such message, or a summary covers it.
            Refused: a message up to there can still change.
            IdempotencyConflict: a summary with another text ends there.

        """
        params = calls.CompactParams(
            session_id=self.session_id, through_sequence=through_sequence, summary=summary
        )
        return (await self._ask("compact", params, calls.CompactResult, repeatable=True)).summary

    async def segment(self, before_sequence: int | UnsetType = UNSET, *, limit: int = 50) -> calls.Page:
        """Read a page of one segment; :attr:`messages` stays as it is.

        First the one that no summary covers (``source`` is ``active``, ``summary`` the last there is); with
        a page's ``next_before_sequence`` the rest of it (where it was ``cut``), or the segment before, which
        has the ``summary`` that closed it. ``has_more`` says whether there is one.
        """
        params = calls.MessagesParams(
            session_id=self.session_id,
            limit=limit,
            before_sequence=before_sequence,
            include_internal=self.include_internal,
            segment=True,
        )
        return await self._ask("messages", params, calls.Page, repeatable=True)

    async def fork(
        self, message_id: str | None = None, *, session_id: str | None = None, title: str | None = None
    ) -> Session:
        """Copy the session up to and with a message, or as a whole, and return the copy, synced.

        It shows internal messages where this session does.
        """
        params = calls.ForkParams(
            session_id=self.session_id,
            message_id=UNSET if message_id is None else message_id,
            new_session_id=UNSET if session_id is None else session_id,
            key=self._new_id("key"),
            title=UNSET if title is None else title,
        )
        made = await self._ask("sessions.fork", params, calls.SessionResult, repeatable=True)
        return await self._owner.session(made.session.session_id, include_internal=self.include_internal)

    async def update(
        self,
        *,
        title: str | UnsetType | None = UNSET,
        metadata: dict[str, Value] | UnsetType = UNSET,
    ) -> SessionInfo:
        """Replace the title (None removes it), the metadata, or both."""
        params = calls.UpdateParams(session_id=self.session_id, title=title, metadata=metadata)
        return (await self._ask("sessions.update", params, calls.SessionResult, repeatable=False)).session

    async def clear(self) -> SessionInfo:
        """Remove all messages. Refused while a turn runs."""
        params = calls.SessionParams(session_id=self.session_id)
        return (await self._ask("sessions.clear", params, calls.SessionResult, repeatable=False)).session

    async def archive(self, *, archived: bool = True) -> SessionInfo:
        """Archive the session, or take it back. Refused while a turn runs."""
        params = calls.ArchiveParams(session_id=self.session_id, archived=archived)
        return (await self._ask("sessions.archive", params, calls.SessionResult, repeatable=False)).session

    async def set_approval_mode(self, mode: ApprovalMode) -> SessionInfo:
        """Let approvals be asked for (``ask``), or be given at once (``always-allow``), waiting ones too."""
        params = calls.ApprovalModeParams(session_id=self.session_id, approval_mode=mode)
        kind = calls.SessionResult
        # not repeated: it would undo what somebody else chose in between
        return (await self._ask("sessions.approval_mode", params, kind, repeatable=False)).session

    async def delete(self) -> None:
        """Delete the session for everybody, for good; it closes here too."""
        params = calls.SessionParams(session_id=self.session_id)
        await self._ask("sessions.delete", params, calls.EmptyResult, repeatable=False)
        self._subscription.close(SessionClosed(self.session_id, "deleted"))

    async def signal(self, name: str, data: Value = None) -> None:
        """Tell the session's other readers something that is not kept; never repeated."""
        params = calls.SignalParams(session_id=self.session_id, name=name, data=data)
        await self._ask("signal", params, calls.EmptyResult, repeatable=False)

    async def close(self) -> None:
        """Stop following the session, for all who share this object. It goes on at the server."""
        self._subscription.close()

    async def until(self, condition: Callable[[], object], timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what is in the way
        """Wait until ``condition()`` is true; it is asked now, and after each frame and change of state.

        Raises:
            TimedOut: not within ``timeout`` seconds.
            SessionClosed: the session closed, and it is not true.

        """
        await self._until(condition, "What was waited for", timeout)

    async def until_live(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what is in the way
        """Wait until the replica is equal to the server.

        Raises:
            TimedOut: not within ``timeout`` seconds.
            MidstreamError: the session closed.

        """
        await self._until(lambda: self.state == "live", f"The sync of session {self.session_id!r}", timeout)

    async def _until(self, condition: Callable[[], object], what: str, seconds: float | None) -> None:
        def look() -> bool | None:
            if condition():
                return True
            self._check_open()
            return None

        await self._subscription.changed.until(look, what=what, timeout=seconds, problem=lambda: self.problem)

    @property
    def _law(self) -> Replica:
        return self._subscription.replica.law

    async def _ask(self, method: str, params: msgspec.Struct, kind: type[R], *, repeatable: bool) -> R:
        self._check_open()
        return await self._exchange.ask(method, params, kind, lane=self.session_id, repeatable=repeatable)

    def _on_news(self, synced: bool) -> None:  # noqa: FBT001 - the form of Subscription.on_news
        self._prompts.settle(live=self.state == "live", synced=synced)

    def _on_closed(self, error: MidstreamError) -> None:
        self._prompts.close(error)
        self._signals.end(self.error)
        self._owner.forget(self)

    def _check_open(self) -> None:
        if self.state == "closed":
            raise self.error or SessionClosed(self.session_id, "closed by this client")

    def _new_id(self, kind: str) -> str:
        return f"{kind}_{self._random.getrandbits(64):016x}"
